"""The nodes of the cluster as admission saw them last, and those that an admin takes out of service."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from gpudev.domain.audit import AuditEntry
from gpudev.domain.drain import Drain, NodeState, find_state
from gpudev.domain.names import NodeName
from gpudev.domain.reservation import Reservation


@dataclass(frozen=True, slots=True)
class StoredDrain:
    """By whom a node was drained, why, and since when nothing is left there."""

    reason: str
    by: str
    at: datetime
    emptied_at: datetime | None


@dataclass(frozen=True, slots=True)
class StoredNode:
    name: NodeName
    gpu_type: str
    slots: int
    is_present: bool
    """Part of the cluster when admission looked last."""
    is_schedulable: bool
    """The cluster itself would place something there."""
    drain: StoredDrain | None
    holders: tuple[Reservation, ...]
    """Those that hold room there, the first to end first."""

    @property
    def state(self) -> NodeState:
        return find_state(
            is_present=self.is_present,
            is_schedulable=self.is_schedulable,
            is_drained=self.drain is not None,
            has_holders=bool(self.holders),
        )


class Nodes(Protocol):
    """Every method is one transaction and raises `StoreUnavailable` when the database does not answer."""

    async def list_all(self) -> tuple[StoredNode, ...]:
        """By type and name; also those that are drained and that the cluster has no more."""
        ...

    async def list_drains(self) -> tuple[Drain, ...]:
        """By name."""
        ...

    async def drain(self, drain: Drain, now: datetime, audit: AuditEntry) -> None:
        """Let nothing new be placed on the node, and have those who are there told; with its audit entry.

        When it returns, every placement there that was ever made is in the database. The same again changes
        nothing, but for another reason; an empty one is none.
        """
        ...

    async def undrain(self, node: NodeName, gpu_type: str, audit: AuditEntry) -> bool:
        """The reverse; False if it was not drained. Its audit entry is written either way."""
        ...
