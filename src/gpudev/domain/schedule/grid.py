"""Time in whole steps: the plan counts in these, so that a promise is a round time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

Step = int
"""A step of the grid, counted from its beginning; what happens at a step happens at its first moment."""

FOREVER: Step = 1 << 40
"""The end of what has no end: the room after the last promise, and what strangers hold."""

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Grid:
    width: timedelta = timedelta(minutes=5)

    def step_of(self, moment: datetime) -> Step:
        """The step that the moment is in."""
        return (moment - _BEGINNING) // self.width

    def step_after(self, moment: datetime) -> Step:
        """The first step that does not begin before the moment."""
        return -((_BEGINNING - moment) // self.width)

    def count(self, length: timedelta) -> int:
        """How many steps cover a length."""
        return -(-length // self.width)

    def time_of(self, step: Step) -> datetime:
        return _BEGINNING + step * self.width
