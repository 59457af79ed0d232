"""How the room of a cluster is shared: the operator's policy, and what users have used.

Fair share offers freed room first to those who have used less. Use is counted in GPU-hours, and what was used
long ago counts less: half as much after each half-life. It decides about the order in which room that came
back is offered, and nothing else; it takes no promised time from anybody. Maintenance is known beforehand, so
that nobody is promised nodes that will be out of service.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import combinations

from gpudev.domain.names import NodeName, UserId
from gpudev.domain.quota import DEFAULT_QUOTA, Quotas


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


_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class FairShare:
    half_life: timedelta

    @property
    def remembers(self) -> timedelta:
        """What is older counts less than a thousandth, and is forgotten."""
        return 10 * self.half_life


def weigh_use(slots: int, start: datetime, end: datetime, now: datetime, half_life: timedelta) -> float:
    """The GPU-hours of one reservation, each counted by how long ago it was."""
    if end <= start:
        return 0.0
    scale = half_life / _HOUR / math.log(2)
    return slots * scale * (_decay(now - end, half_life) - _decay(now - start, half_life))


def _decay(age: timedelta, half_life: timedelta) -> float:
    return math.exp2(-(age / half_life))


@dataclass(frozen=True, slots=True)
class SharingPolicy:
    quotas: Quotas = field(default_factory=Quotas)
    fair_share: FairShare | None = None
    """None: first come, first served."""
    maintenance: tuple[Maintenance, ...] = ()
    node_labels: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Which values of which labels may be asked for."""


ALIKE = SharingPolicy()
"""Everybody may have everything, in the order of coming."""


def with_default_quota(policy: SharingPolicy) -> SharingPolicy:
    """The rules of the policy come first; who has none has the default."""
    return replace(policy, quotas=replace(policy.quotas, default=DEFAULT_QUOTA))


@dataclass(frozen=True, slots=True)
class Shares:
    """The policy, and what users have used of one type."""

    policy: SharingPolicy = ALIKE
    used: Mapping[UserId, float] = field(default_factory=dict)
    """GPU-hours by fair share; nothing where that is off."""


NO_SHARES = Shares()
