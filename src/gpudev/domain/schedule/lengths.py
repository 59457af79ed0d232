"""The first of all gaps that are long enough: a heap for each length, and a tree of their minima over it.

A gap is known by a key, a number that sorts as gaps are to be chosen. What is taken out stays in its heap
until it comes to the top, so that every change costs the depth of the tree at most.
"""

from __future__ import annotations

from heapq import heappop, heappush

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
