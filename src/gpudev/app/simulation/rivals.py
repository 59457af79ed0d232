"""Simpler ways to tell somebody when they will start: what the forecast of the plan is measured against."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta

_A_PLACE = timedelta(minutes=15)
_RECENT = timedelta(hours=4)


def by_position(now: datetime, position: int) -> datetime:
    """A quarter of an hour for each place in the queue."""
    return now + position * _A_PLACE


class StartRate:
    """As many places an hour as there were starts an hour lately."""

    def __init__(self) -> None:
        self._starts: deque[datetime] = deque()

    def count(self, now: datetime) -> None:
        self._starts.append(now)

    def estimate(self, now: datetime, position: int) -> datetime:
        while self._starts and self._starts[0] < now - _RECENT:
            self._starts.popleft()
        return now + position * _RECENT / max(1, len(self._starts))
