"""Free slots over time, as a staircase: a number for each stretch between two changes.

`Room` is that of one node, `Allowance` what one owner may have at once on all nodes together. A *strict*
limit always holds. A limit on long reservations counts each only until `tail` steps before its end, so that
what ends within the tail never counts. It is not strict: a slot that was promised stays when the limit
shrinks, and a request for more than the limit fits where its owner has nothing long.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from gpudev.domain.schedule.grid import FOREVER, Step


class Room:
    """Free slots from `origin` on. They may be negative for a while: more was promised than there is."""

    __slots__ = ("_free", "_starts")

    def __init__(self, slots: int, origin: Step) -> None:
        self._starts = [origin]
        self._free = [slots]

    @property
    def origin(self) -> Step:
        return self._starts[0]

    def change(self, start: Step, end: Step, slots: int) -> None:
        """More (or, negative, fewer) free slots in a stretch of time."""
        if end <= self.origin:
            return
        first, last = self._cut(max(start, self.origin)), self._cut(end)
        for index in range(first, last):
            self._free[index] += slots
        self._join(last)
        self._join(first)

    def at(self, step: Step) -> int:
        return self._free[max(0, bisect_right(self._starts, step) - 1)]

    def least(self, start: Step, end: Step) -> int:
        """The fewest that are free at any time of a stretch."""
        first = max(0, bisect_right(self._starts, start) - 1)
        return min(self._free[first : max(first + 1, bisect_left(self._starts, end))])

    def list_holes(self, start: Step, end: Step, wanted: int) -> list[tuple[Step, Step, int]]:
        """The longest stretches between two times with so many free: from, to, and how many at first."""
        starts, free = self._starts, self._free
        holes: list[tuple[Step, Step, int]] = []
        opened, at_first = -1, 0
        for index in range(max(0, bisect_right(starts, start) - 1), bisect_left(starts, end)):
            if free[index] >= wanted:
                if opened < 0:
                    opened, at_first = max(starts[index], start), free[index]
            elif opened >= 0:
                holes.append((opened, starts[index], at_first))
                opened = -1
        if opened >= 0:
            holes.append((opened, end, at_first))
        return holes

    def forget_before(self, step: Step) -> None:
        """The past is over: the staircase begins here."""
        index = bisect_right(self._starts, step) - 1
        if index >= 0:
            del self._starts[:index], self._free[:index]
            self._starts[0] = step

    def _cut(self, step: Step) -> int:
        """The index of the stretch that begins at a step, made if there is none."""
        if step >= FOREVER:
            return len(self._starts)
        index = bisect_left(self._starts, step)
        if index == len(self._starts) or self._starts[index] != step:
            self._starts.insert(index, step)
            self._free.insert(index, self._free[index - 1])
        return index

    def _join(self, index: int) -> None:
        """Two stretches with the same room are one."""
        if 0 < index < len(self._free) and self._free[index] == self._free[index - 1]:
            del self._starts[index], self._free[index]


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
