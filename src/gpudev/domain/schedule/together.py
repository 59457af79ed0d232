"""When several nodes have room at the same time: a gang starts as a whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from gpudev.domain.schedule.grid import Step


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
