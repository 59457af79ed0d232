"""The gaps of all nodes in which a request of one size fits, and which of them is the first.

Of gaps that begin together, the one on the fullest node comes first, and then the one on the first node. The
first that is long enough is found by a heap for each length and a tree of their minima. A gap is known by a
key, a number that sorts as gaps are to be chosen. What is taken out stays in its heap until it comes to the
top, so that every change costs the depth of the tree at most. A gang needs gaps on several nodes at the same
time: it starts as a whole or not at all.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

from gpudev.domain.schedule.grid import Step
from gpudev.domain.schedule.room import Room

NONE = 1 << 62
"""Greater than every key: there is no such gap."""


class LengthTree:
    """Gaps by their lengths, counted in steps. All from `longest` on are alike: long enough for anything."""

    __slots__ = ("_heaps", "_live", "_longest", "_size", "_tree")

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._size = 1 << longest.bit_length()
        self._tree = [NONE] * (2 * self._size)
        self._heaps: list[list[int]] = [[] for _ in range(longest + 1)]
        self._live: dict[int, int] = {}

    def add(self, key: int, length: int) -> None:
        leaf = min(length, self._longest)
        heappush(self._heaps[leaf], key)
        self._live[key] = leaf
        if key < self._tree[leaf + self._size]:
            self._set(leaf, key)

    def discard(self, key: int) -> None:
        leaf = self._live.pop(key)
        if self._tree[leaf + self._size] == key:
            heap, live = self._heaps[leaf], self._live
            while heap and live.get(heap[0]) != leaf:
                heappop(heap)
            self._set(leaf, heap[0] if heap else NONE)

    def first(self, length: int) -> int:
        """The least key of those that are at least so long."""
        tree, node = self._tree, min(length, self._longest) + self._size
        least = tree[node]
        while node > 1:
            if not node & 1 and tree[node + 1] < least:
                least = tree[node + 1]
            node >>= 1
        return least

    def _set(self, leaf: int, key: int) -> None:
        tree, node = self._tree, leaf + self._size
        tree[node] = key
        while node > 1:
            least = min(tree[node], tree[node ^ 1])
            node >>= 1
            if tree[node] == least:
                break
            tree[node] = least


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


class Opening(NamedTuple):
    """A node on which one may start at any time from `earliest` to `latest`."""

    earliest: Step
    latest: Step
    node: int


def find_together(
    openings: Iterator[Opening], count: int, free_at: Callable[[int, Step], int]
) -> tuple[Step, tuple[int, ...]] | None:
    """The first time at which so many nodes are open, and the fullest of those; the lower number breaks ties.

    The openings come by their earliest times, and no more of them are read than it takes.
    """
    is_open: list[Opening] = []
    start: Step | None = None
    for opening in openings:
        if start is not None and opening.earliest > start:
            break
        is_open = [other for other in is_open if other.latest >= opening.earliest]
        is_open.append(opening)
        if len(is_open) >= count:
            start = opening.earliest
    if start is None:
        return None
    nodes = sorted((free_at(opening.node, start), opening.node) for opening in is_open)
    return start, tuple(node for _, node in nodes[:count])
