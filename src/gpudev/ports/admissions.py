"""Admission: passes for one GPU type at a time, what they promise, and how that turned out.

A pass is one transaction; so is every other method. All raise `StoreUnavailable` when the database does not
answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from gpudev.domain.capacity import Node, NodeRoom
from gpudev.domain.drain import Drain
from gpudev.domain.names import NodeName, ReservationId, UserId
from gpudev.domain.plans.turn import Record
from gpudev.domain.policy import FairShare
from gpudev.domain.queue import Accuracy, Habits, QueuePlace, Submission
from gpudev.domain.reservation import Reservation


class AdmissionTransaction(Protocol):
    """One pass for one GPU type. Nobody else admits for it until this transaction ends."""

    async def read(self) -> tuple[Reservation, ...]:
        """All that wait, and all that hold room."""
        ...

    async def read_habits(self, since: datetime) -> Habits:
        """How long those of this type waited who started since then."""
        ...

    async def list_port_slots(self) -> frozenset[str]:
        """The ready addresses that reservations of any type have."""
        ...

    async def list_disk_busy(self) -> frozenset[ReservationId]:
        """Those of the waiting whose disk is not free."""
        ...

    async def list_disk_zones(self) -> Mapping[ReservationId, str]:
        """Where the disks of those that wait are; without those that are nowhere yet."""
        ...

    async def record(self, record: Record) -> bool:
        """A guarded write; False if somebody else moved first, `Stale` if its port slot was given away.

        A placement takes the reservation's disk as well, or does not happen.
        """
        ...

    async def read_use(self, fair_share: FairShare, now: datetime) -> Mapping[UserId, float]:
        """What users have used of the type, in GPU-hours that count less the older they are."""
        ...

    async def set_rooms(self, rooms: Sequence[NodeRoom]) -> None:
        """Keep which nodes are in service, for those who ask what would be; see `Forecasts`."""
        ...

    async def list_drains(self) -> tuple[Drain, ...]:
        """Of nodes of every type."""
        ...

    async def set_nodes(self, nodes: Sequence[Node]) -> None:
        """Keep which nodes of the type there are, as the cluster shows them; see `ports.nodes`."""
        ...

    async def set_emptied(self, nodes: Sequence[NodeName], now: datetime) -> tuple[NodeName, ...]:
        """Note that nothing is left on these drained nodes; those of which it was not noted before."""
        ...

    async def set_queue_places(self, places: Sequence[QueuePlace], now: datetime) -> None:
        """Write where waiting requests stand, and tell those who follow them."""
        ...


class Admissions(Protocol):
    def lock(self, gpu_type: str) -> AbstractAsyncContextManager[AdmissionTransaction]:
        """A transaction in which nobody else admits for this type."""
        ...

    async def wake(self, gpu_type: str) -> None:
        """Tell every controller that a pass for this type is wanted."""
        ...

    async def list_waiting_types(self) -> tuple[str, ...]:
        """GPU types that somebody waits for: for room, or for a drained node to become empty."""
        ...


@dataclass(frozen=True, slots=True)
class Outlook:
    """Everything that the plan of one GPU type follows from, as far as it is stored."""

    reservations: tuple[Reservation, ...]
    """All that wait, and all that hold room."""
    rooms: tuple[NodeRoom, ...]
    """The nodes in service when admission looked last."""
    habits: Habits
    disk_busy: frozenset[ReservationId] = frozenset()
    """Those of the waiting whose disk is not free: no room is kept for them."""


class Forecasts(Protocol):
    """Every method is one transaction and raises `StoreUnavailable` when the database does not answer."""

    async def read_outlook(self, gpu_type: str, since: datetime) -> Outlook:
        """For those who only ask: it locks nothing. Habits are learned from what started since then."""
        ...

    async def read_use(self, gpu_type: str, fair_share: FairShare, now: datetime) -> Mapping[UserId, float]:
        """What users have used of the type, in GPU-hours that count less the older they are."""
        ...

    async def list_submissions(self, gpu_type: str, since: datetime) -> tuple[Submission, ...]:
        """What was asked for since then and is over, in the order of coming; who asked is left out of it.

        Users are numbered: whoever replays this need not know them.
        """
        ...

    async def measure_accuracy(self, since: datetime, step: timedelta) -> tuple[Accuracy, ...]:
        """Of the forecasts for those who started since then, by type; a promise names a step so wide."""
        ...
