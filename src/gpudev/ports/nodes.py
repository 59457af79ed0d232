"""GPU types with their room, and the nodes of the cluster, as admission saw them last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from gpudev.domain.audit import AuditEntry
from gpudev.domain.capacity import Availability
from gpudev.domain.catalogue import GpuType
from gpudev.domain.drain import Drain, find_state
from gpudev.domain.names import NodeName
from gpudev.domain.reservation import Reservation
from gpudev.domain.scaling import TypeCapacity
from gpudev.ports.users import ShownKey, User
from gpudev.texts.vocabulary import NodeState


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


@dataclass(frozen=True, slots=True)
class StoredAvailability:
    """One type's room with what is wanted of it."""

    availability: Availability
    max_per_node: int
    queued_requests: int
    queued_gpus: int
    updated_at: datetime | None


class GpuTypes(Protocol):
    async def sync_types(self, offered: Sequence[GpuType]) -> None:
        """Make the table say what the catalogue says: these are on offer, all others are not."""
        ...

    async def list_types(self) -> tuple[GpuType, ...]:
        """Every type that is or ever was on offer, as far as the table remembers it."""
        ...

    async def set_availability(self, availability: Availability, updated_by: str, now: datetime) -> None:
        """Keep the room of a type, if it is another than before."""
        ...

    async def set_capacity(
        self, capacity: Mapping[str, TypeCapacity], updated_by: str, now: datetime
    ) -> None:
        """Keep how many machines of each type the cloud runs, and how many it should."""
        ...

    async def list_availability(self) -> tuple[StoredAvailability, ...]:
        """The room of each type on offer, as it was measured last."""
        ...

    async def list_availability_for_key(
        self, key: ShownKey
    ) -> tuple[User | None, tuple[StoredAvailability, ...]]:
        """The same, with the key's owner, found out in the same statement."""
        ...
