"""A reservation: what was asked for, where it stands, and the moves that change it.

Every function here returns a new value; the store writes it only if nobody else moved first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from gpudev.domain.disk import DiskId, VolumeId
from gpudev.domain.lifecycle import check_move
from gpudev.domain.names import NodeName, ReservationId, UserId, id8
from gpudev.domain.server import Member, SshAddress
from gpudev.texts.fact import reason_fact
from gpudev.texts.sentences import say
from gpudev.texts.vocabulary import LIVE, PLACED, TERMINAL, WAITING, EventKind, Outcome, Reason, Status


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of a reservation's history: what, why and when; the store adds its number."""

    kind: EventKind
    message: str
    at: datetime
    reason: Reason | None = None


ANSWERS = "The dev server answers on SSH."
"""The detail of an active reservation of which nothing else is to be said."""


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
    image: str = ""
    """The user's own image; empty: the standard one."""
    port_slot: str = ""
    """The ready address that goes with the placement; see `ports.cluster.Snapshot`."""
    queue_position: int | None = None
    estimated_start_at: datetime | None = None
    """While it waits: when it starts at the latest, by the plan. Failures aside, it moves earlier only."""
    planned_nodes: tuple[NodeName, ...] = ()
    """While it waits: where the plan keeps room for it from then on."""
    likely_start: tuple[datetime, datetime] | None = None
    """While it waits: the window in which it will probably start; None where too little is known."""
    start_at: datetime | None = None
    """Booked for this time: it does not start before."""
    node_labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that its nodes must have."""
    last_queue_update: datetime | None = None
    placed_at: datetime | None = None
    launched_at: datetime | None = None
    expires_at: datetime | None = None
    ended_at: datetime | None = None
    cancelled_at: datetime | None = None
    cleaned_at: datetime | None = None
    last_updated: datetime | None = None
    version: int = 1
    warned_minutes: int | None = None
    """The nearest warning that was sent for the present end."""
    told_notices: tuple[str, ...] | None = None
    """The notices that stand on the server; None until it was first seen to."""
    extension_error: str = ""
    """Why the last extension was refused."""
    oom_count: int = 0
    last_oom_at: datetime | None = None
    progress: str | None = None
    """What the cluster last said of its start, and when that was first seen."""
    progress_at: datetime | None = None
    stale_since: datetime | None = None
    """Since when a waiting request that admission does not renew is driven, and when it was last."""
    driven_at: datetime | None = None
    kept_until: datetime | None = None
    """Until then it is not ended for being idle."""
    idle_warned_at: datetime | None = None
    """When it was warned that nobody uses it, and in which words."""
    idle_warning: str = ""
    drain_warning: str = ""
    """What was told of its nodes being taken out of service; empty: they stay."""
    usage_at: datetime | None = None
    """When its use was last measured, since when it was idle then, and by which signals."""
    idle_since: datetime | None = None
    idle_words: str = ""
    outcome: Outcome | None = None
    """What became of the command of `gpu-dev submit`; None: there is none, or it has not ended."""
    exit_code: int | None = None

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
        port_slot="",
        placed_at=None,
    )


def place(
    reservation: Reservation, nodes: tuple[NodeName, ...], now: datetime, port_slot: str = ""
) -> Reservation:
    """On these nodes, one for each rank. What an earlier start has shown is no news of this one."""
    return replace(
        reservation,
        status=check_move(reservation.status, Status.PREPARING),
        reason=None,
        detail=f"Starting on {', '.join(nodes)}.",
        members=tuple(Member(node) for node in nodes),
        port_slot=port_slot,
        placed_at=now,
        progress=None,
        progress_at=None,
        queue_position=None,
        estimated_start_at=None,
        planned_nodes=(),
        likely_start=None,
    )


def activate(reservation: Reservation, members: tuple[Member, ...], now: datetime) -> Reservation:
    """The server answers; only now the reserved time starts to run."""
    return replace(
        reservation,
        status=check_move(reservation.status, Status.ACTIVE),
        reason=None,
        detail=ANSWERS,
        members=members,
        launched_at=now,
        expires_at=now + reservation.duration,
        # In a home of its own stands nothing; on a disk there may be what its last user was told.
        told_notices=() if reservation.disk_id is None else None,
    )


def end(
    reservation: Reservation, status: Status, reason: Reason, now: datetime, detail: str = ""
) -> Reservation:
    """Into a terminal state. It is written before anything is taken away."""
    return replace(
        reservation,
        status=check_move(reservation.status, status),
        reason=reason,
        detail=detail or say(reason_fact(reason)),
        queue_position=None,
        estimated_start_at=None,
        planned_nodes=(),
        likely_start=None,
        ended_at=now,
        cancelled_at=now if status is Status.CANCELLED else None,
    )


def tell(reservation: Reservation, detail: str) -> Reservation:
    """The same reservation, with something else to say about it."""
    return replace(reservation, detail=detail)


def clean(reservation: Reservation, now: datetime) -> Reservation:
    """Nothing of it is left in the cluster."""
    return replace(reservation, cleaned_at=now)
