"""What a turn knows of a reservation, and what it can do: a closed union of ordered actions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from gpudev.domain.catalogue import GpuType
from gpudev.domain.disk import Disk, DiskId
from gpudev.domain.drain import Drain
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.idle import NEVER, IdlePolicy
from gpudev.domain.job import Job
from gpudev.domain.names import ReservationId
from gpudev.domain.notices import Notice
from gpudev.domain.operations import Operation, OperationOutcome
from gpudev.domain.queue import QueuePlace
from gpudev.domain.reservation import Event, Reservation
from gpudev.domain.server import ObservedServer, ServerSpec


@dataclass(frozen=True, slots=True)
class CreateServer:
    """Make the dev server, or adopt the one that is ours already."""

    spec: ServerSpec


@dataclass(frozen=True, slots=True)
class DeleteServer:
    """Take down this very incarnation of a dev server."""

    reservation_id: ReservationId
    uid: str


@dataclass(frozen=True, slots=True)
class ListHome:
    """Keep what is in the home of this incarnation, which is a disk: best effort, and never in the way."""

    reservation_id: ReservationId
    uid: str
    disk_id: DiskId


@dataclass(frozen=True, slots=True)
class KeepJobOutput:
    """Keep the end of what a command has written, for when its server is gone."""

    reservation_id: ReservationId
    output: str


@dataclass(frozen=True, slots=True)
class DiscardPortSlot:
    """Take away the ready address of a placement that is over; nobody else is to get it."""

    port_slot: str


@dataclass(frozen=True, slots=True)
class Record:
    """Write a change, its event and the outcome of the operations that it settles, if nobody moved first."""

    before: Reservation
    after: Reservation
    event: Event
    outcomes: tuple[OperationOutcome, ...] = ()

    @property
    def concerns_admission(self) -> bool:
        """Those who wait may move: room came back, or somebody joined or left the line."""
        room_came_back = self.before.holds_room and not self.after.holds_room
        joined_the_line = self.after.is_waiting and not self.before.is_waiting
        left_the_line = self.before.is_waiting and self.after.is_ended
        return room_came_back or joined_the_line or left_the_line


@dataclass(frozen=True, slots=True)
class SettleOperations:
    """Write the outcome of operations that change nothing: the second cancel of the same reservation."""

    outcomes: tuple[OperationOutcome, ...]


@dataclass(frozen=True, slots=True)
class Tell:
    """Let exactly these notices stand on this incarnation of a dev server, and show the new ones."""

    reservation_id: ReservationId
    uid: str
    notices: tuple[Notice, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """Write down what was seen or done and is no event: no new version, nothing to decide anew."""

    after: Reservation


@dataclass(frozen=True, slots=True)
class DriveAdmission:
    """Have admission look at a type that it should have looked at by itself."""

    gpu_type: str


@dataclass(frozen=True, slots=True)
class LookAgain:
    """Nothing to do before this time, unless something happens."""

    at: datetime


@dataclass(frozen=True, slots=True)
class SetQueuePlaces:
    places: tuple[QueuePlace, ...]


ReservationAction = (
    CreateServer
    | DeleteServer
    | ListHome
    | KeepJobOutput
    | DiscardPortSlot
    | Record
    | SettleOperations
    | Tell
    | Note
    | DriveAdmission
    | LookAgain
)
AdmissionAction = Record | SetQueuePlaces


Plan = tuple[ReservationAction, ...]


@dataclass(frozen=True, slots=True)
class Observation:
    """One read of the database and the cluster.

    `server` is None if the cluster said that there is none, or where it did not answer at all.
    """

    reservation: Reservation
    operations: tuple[Operation, ...]
    server: ObservedServer | None
    gpu_type: GpuType
    policy: TimePolicy
    now: datetime
    cluster_answers: bool = True
    idle_policy: IdlePolicy = NEVER
    has_node: bool = True
    """Whether the nodes of its placement are still part of the cluster; asked of one without a server."""
    disk: Disk | None = None
    """The disk of a reservation that starts, if it has one."""
    drains: tuple[Drain, ...] = ()
    """Those of its nodes that are taken out of service."""
    told_at: datetime | None = None
    """When its users may be told something, if that is not now: they did not hear it the last time."""

    job: Job | None = None
    """The command of `gpu-dev submit` on it, as far as its files tell; None: none, or nobody asked."""

    @property
    def due_operations(self) -> tuple[Operation, ...]:
        """One that was to wait a moment has nothing to wait for once the reservation has ended."""
        is_ended = self.reservation.is_ended
        return tuple(asked for asked in self.operations if is_ended or asked.is_due(self.now))
