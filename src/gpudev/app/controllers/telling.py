"""Who can be told something at this moment.

Telling takes a program on the dev server, and a server or a node that hangs lets it wait. That must hold up
nobody: only a few are told at once, and one that did not hear is left alone for a while, ever longer. All of
it is forgotten with the process: then it is simply tried again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from gpudev.domain.names import ReservationId

_AT_ONCE = 4
_FIRST_PAUSE = timedelta(seconds=2)
_LONGEST_PAUSE = timedelta(minutes=5)
_UNTIL_A_PLACE_IS_FREE = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class _Deafness:
    failures: int
    until: datetime


class Telling:
    def __init__(self) -> None:
        self._places = _AT_ONCE
        self._deaf: dict[ReservationId, _Deafness] = {}

    def find_next_try(self, reservation_id: ReservationId, now: datetime) -> datetime | None:
        """When it may be told, if that is not now."""
        deaf = self._deaf.get(reservation_id)
        if deaf is not None and deaf.until > now:
            return deaf.until
        return None if self._places else now + _UNTIL_A_PLACE_IS_FREE

    @contextmanager
    def taking_a_place(self) -> Iterator[None]:
        self._places -= 1
        try:
            yield
        finally:
            self._places += 1

    def note_failure(self, reservation_id: ReservationId, now: datetime) -> None:
        known = self._deaf.get(reservation_id)
        failures = known.failures + 1 if known else 1
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(failures - 1, 16))
        self._deaf[reservation_id] = _Deafness(failures, now + pause)

    def forget(self, reservation_id: ReservationId) -> None:
        """It has heard, or there is nothing to tell it any more."""
        self._deaf.pop(reservation_id, None)
