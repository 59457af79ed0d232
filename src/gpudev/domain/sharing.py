"""How the room of a cluster is shared: the operator's policy, and what users have used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gpudev.domain.fair_share import FairShare
from gpudev.domain.maintenance import Maintenance
from gpudev.domain.names import UserId
from gpudev.domain.quota import DEFAULT_QUOTA, Quotas


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
