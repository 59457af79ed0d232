"""A reservation: what was asked for, where it stands, and the moves that change it.

Every function here returns a new value; the store writes it only if nobody else moved first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

from gpudev.domain.disk import DiskId, VolumeId
from gpudev.domain.lifecycle import LIVE, PLACED, TERMINAL, WAITING, Status, check_move
from gpudev.domain.names import NodeName, OperationId, ReservationId, UserId, id8
from gpudev.domain.server import Member, SshAddress


class Reason(StrEnum):
    """Why a reservation is where it is. Each has a sentence and a hint in `EXPLANATIONS`."""

    WAITING_FOR_CAPACITY = "waiting_for_capacity"
    WAITING_IN_LINE = "waiting_in_line"
    NO_NODES = "no_nodes"
    DISK_BUSY = "disk_busy"
    PLACEMENT_LOST = "placement_lost"
    TIME_IS_UP = "time_is_up"
    CANCELLED_BY_USER = "cancelled_by_user"
    CANCELLED_BY_ADMIN = "cancelled_by_admin"
    START_FAILED = "start_failed"
    START_TIMED_OUT = "start_timed_out"
    SERVER_FAILED = "server_failed"
    POD_DELETED = "pod_deleted"
    DISK_FAILED = "disk_failed"
    INTERNAL_ERROR = "internal_error"


@dataclass(frozen=True, slots=True)
class Explanation:
    sentence: str
    hint: str


EXPLANATIONS: Mapping[Reason, Explanation] = MappingProxyType(
    {
        Reason.WAITING_FOR_CAPACITY: Explanation(
            "Not enough GPUs of this type are free on any one node.",
            "It starts by itself. Free types are listed by: gpu-dev avail",
        ),
        Reason.WAITING_IN_LINE: Explanation(
            "Earlier requests for this type go first.",
            "It starts by itself. Free types are listed by: gpu-dev avail",
        ),
        Reason.NO_NODES: Explanation(
            "No node of this type that could hold it is in service.",
            "Choose another type from: gpu-dev avail",
        ),
        Reason.DISK_BUSY: Explanation(
            "Its disk is still being given back by an earlier reservation.",
            "It starts by itself. Another disk, or none, would start sooner: --disk NAME or --disk none",
        ),
        Reason.PLACEMENT_LOST: Explanation(
            "The chosen node could not take the server, so the request is back at its place in the queue.",
            "Nothing to do: it starts by itself.",
        ),
        Reason.TIME_IS_UP: Explanation("The reserved time is over.", "Reserve again with: gpu-dev reserve"),
        Reason.CANCELLED_BY_USER: Explanation(
            "It was cancelled by its owner.", "Reserve again with: gpu-dev reserve"
        ),
        Reason.CANCELLED_BY_ADMIN: Explanation(
            "It was cancelled by an admin.", "Ask your operator why before you reserve again."
        ),
        Reason.START_FAILED: Explanation(
            "The dev server could not be started.",
            "The cluster's own words are in: gpu-dev show ID. Then reserve again.",
        ),
        Reason.START_TIMED_OUT: Explanation(
            "The dev server did not start in time and was given up.",
            "Reserve again with: gpu-dev reserve",
        ),
        Reason.SERVER_FAILED: Explanation(
            "The dev server stopped running and could not be brought back.",
            "The cluster's own words are in: gpu-dev show ID. Then reserve again.",
        ),
        Reason.POD_DELETED: Explanation(
            "The dev server was removed from outside while the reservation was active.",
            "Reserve again with: gpu-dev reserve",
        ),
        Reason.DISK_FAILED: Explanation(
            "Its disk could not be made ready, and no empty home was put in its place.",
            "Tell your operator. Without the disk: gpu-dev reserve --disk none",
        ),
        Reason.INTERNAL_ERROR: Explanation(
            "An error of gpu-dev itself ended this reservation.",
            "Reserve again, and tell your operator the reservation id.",
        ),
    }
)


class EventKind(StrEnum):
    """What can happen to a reservation, as its owner reads it."""

    SUBMITTED = "submitted"
    QUEUED = "queued"
    PLACED = "placed"
    REQUEUED = "requeued"
    ACTIVE = "active"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    FAILED = "failed"
    CLEANED = "cleaned"


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of a reservation's history: what, why and when; the store adds its number."""

    kind: EventKind
    message: str
    at: datetime
    reason: Reason | None = None


class OperationKind(StrEnum):
    CANCEL = "cancel"


class OperationStatus(StrEnum):
    REQUESTED = "requested"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Operation:
    """An action that a user requested and a controller carries out."""

    operation_id: OperationId
    kind: OperationKind
    requested_at: datetime
    is_by_admin: bool = False
    """Requested for the owner by somebody else."""


@dataclass(frozen=True, slots=True)
class OperationOutcome:
    operation_id: OperationId
    status: OperationStatus
    error: str = ""


@dataclass(frozen=True, slots=True)
class Reservation:
    """One row of `reservations`, as the rules see it. `version` grows with every change."""

    id: ReservationId
    user_id: UserId
    username: str
    name: str
    gpu_type: str
    gpu_count: int
    """On all nodes together."""
    duration: timedelta
    created_at: datetime
    node_count: int = 1
    """How many nodes it takes: one, or for a gang several whole ones."""
    status: Status = Status.PENDING
    reason: Reason | None = None
    detail: str = ""
    """The sentence that belongs to the status, with the names and times of this very case."""
    env_vars: Mapping[str, str] = field(default_factory=dict)
    ssh_public_keys: tuple[str, ...] = ()
    client_version: str = ""
    github_user: str = ""
    """Whose keys were let in besides those that were sent."""
    warning: str = ""
    """What the user should know of how the request was read."""
    disk_id: DiskId | None = None
    """The disk that is its home; None: a home that is not kept."""
    disk_name: str = ""
    volume_id: VolumeId | None = None
    """The disk's volume, once its server is there."""
    members: tuple[Member, ...] = ()
    """Its part on each node, by rank; none before it is placed."""
    queue_position: int | None = None
    estimated_start_at: datetime | None = None
    last_queue_update: datetime | None = None
    placed_at: datetime | None = None
    launched_at: datetime | None = None
    expires_at: datetime | None = None
    ended_at: datetime | None = None
    cancelled_at: datetime | None = None
    cleaned_at: datetime | None = None
    last_updated: datetime | None = None
    version: int = 1

    @property
    def id8(self) -> str:
        return id8(self.id)

    @property
    def is_gang(self) -> bool:
        return self.node_count > 1

    @property
    def gpus_per_node(self) -> int:
        return self.gpu_count // self.node_count

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        return tuple(member.node for member in self.members)

    @property
    def node(self) -> NodeName | None:
        """Where rank 0 is."""
        return self.members[0].node if self.members else None

    @property
    def address(self) -> SshAddress | None:
        return self.members[0].address if self.members else None

    @property
    def host_keys(self) -> tuple[str, ...]:
        return self.members[0].host_keys if self.members else ()

    @property
    def is_waiting(self) -> bool:
        return self.status in WAITING

    @property
    def is_placed(self) -> bool:
        return self.status in PLACED

    @property
    def is_live(self) -> bool:
        return self.status in LIVE

    @property
    def is_ended(self) -> bool:
        return self.status in TERMINAL

    @property
    def is_cleaned(self) -> bool:
        return self.cleaned_at is not None

    @property
    def holds_room(self) -> bool:
        """Takes GPUs of its nodes: placed, or ended with something of it still to be cleaned away."""
        return bool(self.members) and not self.is_cleaned


def queue(reservation: Reservation, reason: Reason, detail: str) -> Reservation:
    """Into the queue, from `pending` or back from a placement that did not hold."""
    return replace(
        reservation,
        status=check_move(reservation.status, Status.QUEUED),
        reason=reason,
        detail=detail,
        members=(),
        placed_at=None,
    )


def place(reservation: Reservation, nodes: tuple[NodeName, ...], now: datetime) -> Reservation:
    """On these nodes, one for each rank."""
    return replace(
        reservation,
        status=check_move(reservation.status, Status.PREPARING),
        reason=None,
        detail=f"Starting on {', '.join(nodes)}.",
        members=tuple(Member(node) for node in nodes),
        placed_at=now,
        queue_position=None,
        estimated_start_at=None,
    )


def activate(reservation: Reservation, members: tuple[Member, ...], now: datetime) -> Reservation:
    """The server answers; only now the reserved time starts to run."""
    return replace(
        reservation,
        status=check_move(reservation.status, Status.ACTIVE),
        reason=None,
        detail="The dev server answers on SSH.",
        members=members,
        launched_at=now,
        expires_at=now + reservation.duration,
    )


def end(
    reservation: Reservation, status: Status, reason: Reason, now: datetime, detail: str = ""
) -> Reservation:
    """Into a terminal state. It is written before anything is taken away."""
    return replace(
        reservation,
        status=check_move(reservation.status, status),
        reason=reason,
        detail=detail or EXPLANATIONS[reason].sentence,
        queue_position=None,
        estimated_start_at=None,
        ended_at=now,
        cancelled_at=now if status is Status.CANCELLED else None,
    )


def clean(reservation: Reservation, now: datetime) -> Reservation:
    """Nothing of it is left in the cluster."""
    return replace(reservation, cleaned_at=now)
