"""Maintenance: times in which nodes are out of service, known beforehand, so that nobody is promised them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations

from gpudev.domain.names import NodeName


@dataclass(frozen=True, slots=True)
class Maintenance:
    start: datetime
    end: datetime
    nodes: frozenset[NodeName] = frozenset()
    gpu_type: str = ""
    """All nodes of a type, instead of single ones."""

    def concerns(self, node: NodeName, gpu_type: str) -> bool:
        return node in self.nodes or gpu_type == self.gpu_type

    def is_on(self, now: datetime) -> bool:
        return self.start <= now < self.end

    def overlaps(self, other: Maintenance) -> bool:
        """Of the same nodes at the same time; a type and a node are told apart by who knows the nodes."""
        is_same = bool(self.nodes & other.nodes) or (bool(self.gpu_type) and self.gpu_type == other.gpu_type)
        return is_same and self.start < other.end and other.start < self.end


def find_overlap(windows: Iterable[Maintenance]) -> tuple[int, int] | None:
    """The places of the first two that overlap."""
    pairs = combinations(enumerate(windows), 2)
    return next(((first, second) for (first, one), (second, other) in pairs if one.overlaps(other)), None)
