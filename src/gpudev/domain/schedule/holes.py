"""The gaps of all nodes in which a request of one size fits, and which of them is the first.

Of gaps that begin together, the one on the fullest node comes first, and then the one on the first node.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpudev.domain.schedule.grid import Step
from gpudev.domain.schedule.lengths import NONE, LengthTree
from gpudev.domain.schedule.room import Room

_NODE_BITS, _FREE_BITS = 24, 12
_START_AT = _NODE_BITS + _FREE_BITS
_NODE_MASK = (1 << _NODE_BITS) - 1


@dataclass(frozen=True, slots=True)
class Hole:
    """A stretch of time with room on a node, as long as it can be."""

    node: int
    start: Step
    end: Step
    free: int
    """How many slots are free when it begins."""

    @property
    def length(self) -> int:
        return self.end - self.start


class Holes:
    """Those in which `wanted` slots are free, kept up to date as the rooms change."""

    __slots__ = ("_ends", "_keys", "_starts", "_tree", "wanted")

    def __init__(self, wanted: int, rooms: Sequence[Room], longest: int) -> None:
        self.wanted = wanted
        self._tree = LengthTree(longest)
        self._starts: list[list[Step]] = [[] for _ in rooms]
        self._ends: list[list[Step]] = [[] for _ in rooms]
        self._keys: list[list[int]] = [[] for _ in rooms]

    def update(self, node: int, room: Room, start: Step, end: Step, *, grows: bool = True) -> None:
        """The room of a node has changed in this stretch of time; what does not touch it is as it was."""
        starts, ends, keys = self._starts[node], self._ends[node], self._keys[node]
        first, last = bisect_left(ends, start), bisect_right(starts, end)
        if first < last:
            start, end = min(start, starts[first]), max(end, ends[last - 1])
        elif not grows:
            return
        found = room.list_holes(start, end, self.wanted)
        fresh = [begin << _START_AT | free << _NODE_BITS | node for begin, _, free in found]
        finishes = [finish for _, finish, _ in found]
        if fresh == keys[first:last] and finishes == ends[first:last]:
            return
        for key in keys[first:last]:
            self._tree.discard(key)
        for key, (begin, finish, _) in zip(fresh, found, strict=True):
            self._tree.add(key, finish - begin)
        starts[first:last] = [begin for begin, _, _ in found]
        ends[first:last], keys[first:last] = finishes, fresh

    def forget_before(self, node: int, room: Room, step: Step) -> None:
        """Holes that have begun in the past begin now."""
        if self._starts[node] and self._starts[node][0] < step:
            past = bisect_right(self._ends[node], step)
            for key in self._keys[node][:past]:
                self._tree.discard(key)
            del self._starts[node][:past], self._ends[node][:past], self._keys[node][:past]
            self.update(node, room, step, step + 1)

    def first_start(self, length: int) -> Step:
        """When the first hole of a length begins; later than everything if there is none."""
        return self._tree.first(length) >> _START_AT

    def find_first(self, length: int) -> Hole | None:
        key = self._tree.first(length)
        return self._hole_of(key) if key != NONE else None

    def in_order(self, length: int) -> Iterator[Hole]:
        """Those that are long enough, in the order in which they are to be chosen.

        Each is taken out of the tree to find the next, and all are put back when the reader stops.
        """
        drawn: list[tuple[int, int]] = []
        try:
            while (key := self._tree.first(length)) != NONE:
                hole = self._hole_of(key)
                drawn.append((key, hole.length))
                self._tree.discard(key)
                yield hole
        finally:
            for key, drawn_length in drawn:
                self._tree.add(key, drawn_length)

    def on_node(self, node: int) -> Iterator[tuple[Step, Step]]:
        return zip(self._starts[node], self._ends[node], strict=True)

    def _hole_of(self, key: int) -> Hole:
        node, start = key & _NODE_MASK, key >> _START_AT
        end = self._ends[node][bisect_left(self._starts[node], start)]
        return Hole(node, start, end, key >> _NODE_BITS & ((1 << _FREE_BITS) - 1))
