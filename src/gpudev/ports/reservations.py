"""Reservations with their events, operations and outputs.

Every method is one transaction and raises `StoreUnavailable` when the database does not answer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NewType, Protocol

from gpudev.domain.audit import AuditEntry
from gpudev.domain.disk import DEFAULT_SIZE_GB, DiskId
from gpudev.domain.drain import Drain
from gpudev.domain.names import OperationId, ReservationId, UserId
from gpudev.domain.operations import NO_TERMS, Operation, OperationOutcome, Terms
from gpudev.domain.plans.turn import Record
from gpudev.domain.quota import NO_LIMIT, Quota
from gpudev.domain.reservation import Event, Reservation
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

    async def request_again(
        self, record: Record, audit: Sequence[AuditEntry] = (), quota: Quota = NO_LIMIT
    ) -> Reservation:
        """Write that a reservation waits again, counted by the quota like a new one; `Stale` if it moved."""
        ...

    async def find_submitter(self, key: ShownKey, disk_name: str) -> tuple[User | None, bool]:
        """The key's owner, and whether a live reservation of theirs has their disk of this name."""
        ...

    async def get(self, reservation_id: ReservationId) -> Reservation:
        """The reservation with this id; `NotFound` if there is none."""
        ...

    async def list_matching(self, user_id: UserId, text: str) -> tuple[Reservation, ...]:
        """The user's reservations that `text` may mean; see `app.reservations.lookup`."""
        ...

    async def list_matching_of_all(self, text: str) -> tuple[Reservation, ...]:
        """The same among the reservations of all users."""
        ...

    async def list_matching_for_key(
        self, key: ShownKey, text: str
    ) -> tuple[User | None, tuple[Reservation, ...]]:
        """Those of the key's owner that `text` may mean."""
        ...

    async def find_for_key(
        self, key: ShownKey, reservation_id: ReservationId, known: Mark | None
    ) -> tuple[User | None, Mark | None, Reservation | None]:
        """The key's owner, the mark of their reservation, and that itself unless the mark is the known one.

        Without a mark the owner has no such reservation.
        """
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

    async def list_events(self, reservation_id: ReservationId, after: int) -> tuple[StoredEvent, ...]:
        """What happened to it after the event of this number, in order."""
        ...

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

    async def count_live(self) -> Mapping[Status, StatusCount]:
        """How many live reservations there are in each status, and their GPUs."""
        ...


class History(Protocol):
    """What is over, read from where it may be a moment late."""

    async def list_page(self, query: ListQuery) -> Page:
        """Newest first, to be shown."""
        ...


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

    async def settle(self, outcomes: Sequence[OperationOutcome], now: datetime) -> None:
        """Write what became of operations."""
        ...

    async def get(self, operation_id: OperationId, user_id: UserId | None) -> StoredOperation:
        """One of this user's, or anybody's where no user is given."""
        ...


class JobOutputs(Protocol):
    async def keep_output(self, reservation_id: ReservationId, output: str) -> None:
        """A second time replaces the first. The text is at most `domain.job.MAX_OUTPUT` bytes long."""
        ...

    async def find_output(self, reservation_id: ReservationId) -> str | None:
        """None if none was kept."""
        ...
