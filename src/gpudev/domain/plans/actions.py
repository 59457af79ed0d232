"""What a plan can ask for: a closed union of frozen verbs, carried out in the order given."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from gpudev.domain.disk import DiskId
from gpudev.domain.names import ReservationId
from gpudev.domain.notices import Notice
from gpudev.domain.operations import OperationOutcome
from gpudev.domain.queue import QueuePlace
from gpudev.domain.reservation import Event, Reservation
from gpudev.domain.server import ServerSpec


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
        """Those who wait may move: room came back, or somebody left the line."""
        room_came_back = self.before.holds_room and not self.after.holds_room
        left_the_line = self.before.is_waiting and self.after.is_ended
        return room_came_back or left_the_line


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
