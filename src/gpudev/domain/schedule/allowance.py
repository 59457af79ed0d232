"""What one owner may have at once on all nodes together, as a staircase over time like that of a node.

A *strict* limit holds always. A limit on long reservations counts each of them only until `tail` steps
before its end, so that what ends within the tail never counts. It is not strict: a slot that was promised
stays when the limit shrinks, and a request for more than the limit fits where its owner has nothing long.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpudev.domain.schedule.grid import FOREVER, Step
from gpudev.domain.schedule.room import Room


@dataclass(frozen=True, slots=True)
class Limit:
    slots: int
    tail: int = 0
    """In steps; 0: the limit is strict, and everything counts to its end."""

    @property
    def is_strict(self) -> bool:
        return self.tail == 0


class Allowance:
    __slots__ = ("_room", "limit")

    def __init__(self, limit: Limit, origin: Step) -> None:
        self.limit = limit
        self._room = Room(limit.slots, origin)

    def change(self, start: Step, end: Step, slots: int) -> None:
        """The owner has so many slots fewer (or, negative, more) in this time."""
        if start < end - self.limit.tail:
            self._room.change(start, end - self.limit.tail, slots)

    def has_room(self, slots: int, start: Step, end: Step) -> bool:
        until = end - self.limit.tail
        return start >= until or self._room.least(start, until) >= self._wanted(slots)

    def list_windows(self, slots: int, start: Step) -> list[tuple[Step, Step]]:
        """The times from a step on in which the owner may have so many more; longer than the tail."""
        tail = self.limit.tail
        holes = self._room.list_holes(start, FOREVER, self._wanted(slots))
        return [(begin, end if end == FOREVER else end + tail) for begin, end, _ in holes]

    def free_until(self, slots: int, start: Step) -> Step:
        """How long the owner may have so many more from a step on; the step itself if not at all."""
        windows = self.list_windows(slots, start)
        return windows[0][1] if windows and windows[0][0] <= start else start + self.limit.tail

    def forget_before(self, step: Step) -> None:
        self._room.forget_before(step)

    def _wanted(self, slots: int) -> int:
        return slots if self.limit.is_strict else min(slots, self.limit.slots)
