"""Reservations with their events and operations, admission, and the GPU types.

Every method is one transaction and raises `StoreUnavailable` when the database does not answer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NewType, Protocol

from gpudev.domain.audit import AuditEntry
from gpudev.domain.capacity import Availability, Node, NodeRoom
from gpudev.domain.catalogue import GpuType
from gpudev.domain.disk import DEFAULT_SIZE_GB, DiskId
from gpudev.domain.drain import Drain
from gpudev.domain.names import NodeName, OperationId, ReservationId, UserId
from gpudev.domain.operations import NO_TERMS, Operation, OperationOutcome, Terms
from gpudev.domain.plans.turn import Record
from gpudev.domain.policy import FairShare
from gpudev.domain.queue import Habits, QueuePlace
from gpudev.domain.quota import NO_LIMIT, Quota
from gpudev.domain.reservation import Event, Reservation
from gpudev.domain.scaling import TypeCapacity
from gpudev.ports.turns import Lease
from gpudev.ports.users import ShownKey, User
from gpudev.texts.fact import Fact
from gpudev.texts.vocabulary import OperationKind, OperationStatus, Status


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event with its number within the reservation and the time since the one before."""

    number: int
    event: Event
    elapsed: timedelta


@dataclass(frozen=True, slots=True)
class StoredOperation:
    operation_id: OperationId
    reservation_id: ReservationId
    kind: OperationKind
    status: OperationStatus
    error: Fact | None
    requested_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class Claim:
    """A reservation that is leased for one turn, and what was read with it."""

    lease: Lease
    reservation: Reservation
    operations: tuple[Operation, ...]
    drains: tuple[Drain, ...] = ()
    """Those of its nodes."""


@dataclass(frozen=True, slots=True)
class Page:
    reservations: tuple[Reservation, ...]
    total: int


Mark = NewType("Mark", bytes)
"""Stands for a reservation exactly as it is: with every write of anything of it, it gets another."""


@dataclass(frozen=True, slots=True)
class MarkedPage:
    marks: tuple[Mark, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Marked:
    """A reservation with the mark that stands for it."""

    mark: Mark
    reservation: Reservation


@dataclass(frozen=True, slots=True)
class ListQuery:
    user_id: UserId | None = None
    """None: of everybody."""
    statuses: tuple[Status, ...] = ()
    gpu_type: str | None = None
    limit: int = 50
    offset: int = 0


@dataclass(frozen=True, slots=True)
class StoredAvailability:
    """One type's room with what is wanted of it."""

    availability: Availability
    max_per_node: int
    queued_requests: int
    queued_gpus: int
    updated_at: datetime | None


@dataclass(frozen=True, slots=True)
class StatusCount:
    reservations: int
    gpus: int


@dataclass(frozen=True, slots=True)
class HomeWish:
    """The disk that is asked for as the home. One that does not exist is made."""

    disk_name: str
    disk_id: DiskId
    """Of the one that is made, if there is none of that name."""
    size_gb: int = DEFAULT_SIZE_GB
    is_default: bool = False
    """Nobody named it: where a live reservation has it, the request does without."""


class Reservations(Protocol):
    async def submit(
        self,
        reservation: Reservation,
        event: Event,
        audit: Sequence[AuditEntry] = (),
        home: HomeWish | None = None,
        quota: Quota = NO_LIMIT,
    ) -> Reservation:
        """Write a new reservation, its event, its message and its audit entry, all or nothing; as written.

        `Conflict` with code `name_taken` when the user has a live one of that name, `id_taken` when the
        id or its first 8 characters are in use, `disk_in_use` when a live one has the disk. `QuotaExceeded`
        when the user has too much for one more; requests of one user are counted one after the other, and a
        repeat is not counted.
        """
        ...

    async def find_submitter(self, key: ShownKey, disk_name: str) -> tuple[User | None, bool]:
        """The key's owner, and whether a live reservation of theirs has their disk of this name."""
        ...

    async def get(self, reservation_id: ReservationId) -> Reservation: ...

    async def list_matching(self, user_id: UserId, text: str) -> tuple[Reservation, ...]:
        """The user's reservations that `text` may mean; see `app.reservations.lookup`."""
        ...

    async def list_matching_of_all(self, text: str) -> tuple[Reservation, ...]:
        """The same among the reservations of all users."""
        ...

    async def list_matching_for_key(
        self, key: ShownKey, text: str
    ) -> tuple[User | None, tuple[Reservation, ...]]:
        """Those of the key's owner, to be shown: without what only their servers and the rules need."""
        ...

    async def list_page(self, query: ListQuery) -> Page:
        """Newest first, to be shown."""
        ...

    async def list_marks_for_key(self, key: ShownKey, query: ListQuery) -> tuple[User | None, MarkedPage]:
        """Those of the key's owner, newest first, for whoever has the most of them already.

        The query's user does not count.
        """
        ...

    async def find_marked(self, marks: Sequence[Mark]) -> Mapping[Mark, Marked]:
        """By the mark that was asked for, each as it is now, to be shown; without those that are gone."""
        ...

    async def list_waiting(self) -> tuple[Reservation, ...]:
        """Everybody's that wait, by GPU type, in the order in which they came."""
        ...

    async def list_events(self, reservation_id: ReservationId, after: int) -> tuple[StoredEvent, ...]: ...

    async def claim(self, reservation_id: ReservationId, lease: timedelta) -> Claim | None:
        """Lease a reservation for one turn; None while another process has it, or when there is none."""
        ...

    async def record(self, claim: Claim, record: Record) -> Reservation:
        """The guarded write: change + event + outcomes. `Stale` if the row or the lease moved on.

        The next turn is due at once, so that whatever follows from the change survives a crash.
        """
        ...

    async def note(self, claim: Claim, after: Reservation) -> Reservation:
        """Write down what is no change of the reservation: its detail and what was seen and told.

        `Stale` if the row or the lease moved on.
        """
        ...

    async def bury(
        self, claim: Claim, record: Record, error: str = "", message_ids: Sequence[int] = ()
    ) -> None:
        """Fail a reservation that our code fails on, send a dead letter for it, and end the lease."""
        ...

    async def list_unfinished(self, ids: Collection[ReservationId]) -> frozenset[ReservationId]:
        """Those of them that there are and that are not cleaned up."""
        ...

    async def list_active(self) -> tuple[Reservation, ...]:
        """Everybody's whose servers are there."""
        ...

    async def list_connectable(self, ids: Collection[ReservationId]) -> frozenset[ReservationId]:
        """Those of them that are active and whose owner may come in."""
        ...

    async def wake(self, reservation_id: ReservationId) -> None:
        """Tell every controller that this one wants its turn."""
        ...

    async def count_live(self) -> Mapping[Status, StatusCount]: ...


class History(Protocol):
    """What is over, read from where it may be a moment late."""

    async def list_page(self, query: ListQuery) -> Page: ...


class Operations(Protocol):
    async def request(
        self,
        operation_id: OperationId,
        reservation: Reservation,
        kind: OperationKind,
        now: datetime,
        audit: Sequence[AuditEntry] = (),
        *,
        is_by_admin: bool = False,
        terms: Terms = NO_TERMS,
    ) -> None:
        """Write an operation, its message, its audit entry, and a new version of the reservation.

        The new version makes every turn in flight stale, so none can decide without having seen it. An id
        that was used before is the same operation: nothing is written again.
        """
        ...

    async def settle(self, outcomes: Sequence[OperationOutcome], now: datetime) -> None: ...

    async def get(self, operation_id: OperationId, user_id: UserId | None) -> StoredOperation:
        """One of this user's, or anybody's where no user is given."""
        ...


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
        """Keep which nodes are in service, for those who ask what would be; see `ports.forecasts`."""
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

    async def set_queue_places(self, places: Sequence[QueuePlace], now: datetime) -> None: ...


class Admissions(Protocol):
    def lock(self, gpu_type: str) -> AbstractAsyncContextManager[AdmissionTransaction]: ...

    async def wake(self, gpu_type: str) -> None:
        """Tell every controller that a pass for this type is wanted."""
        ...

    async def list_waiting_types(self) -> tuple[str, ...]:
        """GPU types that somebody waits for: for room, or for a drained node to become empty."""
        ...


class GpuTypes(Protocol):
    async def sync(self, offered: Sequence[GpuType]) -> None:
        """Make the table say what the catalogue says: these are on offer, all others are not."""
        ...

    async def list_all(self) -> tuple[GpuType, ...]:
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

    async def list_availability(self) -> tuple[StoredAvailability, ...]: ...

    async def list_availability_for_key(
        self, key: ShownKey
    ) -> tuple[User | None, tuple[StoredAvailability, ...]]: ...
