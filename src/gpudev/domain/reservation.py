"""A reservation: what was asked for, where it stands, and the only table of the moves it may make.

Status says where it stands, reason says why. Every function here returns a new value; the store writes it
only if nobody else moved first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType

from gpudev.domain.disk import DiskId, VolumeId
from gpudev.domain.errors import IllegalMove
from gpudev.domain.names import NodeName, ReservationId, UserId, id8
from gpudev.domain.server import Member, SshAddress
from gpudev.texts.fact import Fact, fact, reason_fact
from gpudev.texts.sentences import say
from gpudev.texts.vocabulary import LIVE, PLACED, TERMINAL, WAITING, EventKind, Outcome, Reason, Status

MOVES: Mapping[Status, frozenset[Status]] = MappingProxyType(
    {
        Status.PENDING: frozenset({Status.QUEUED, Status.PREPARING, Status.CANCELLED, Status.FAILED}),
        Status.QUEUED: frozenset({Status.PREPARING, Status.CANCELLED, Status.FAILED}),
        # Back to the queue when a placement did not hold; the request keeps its place there.
        Status.PREPARING: frozenset({Status.ACTIVE, Status.QUEUED, Status.CANCELLED, Status.FAILED}),
        Status.ACTIVE: frozenset({Status.STOPPED, Status.EXPIRED, Status.CANCELLED, Status.FAILED}),
        Status.STOPPED: frozenset({Status.PENDING, Status.EXPIRED, Status.CANCELLED, Status.FAILED}),
        Status.EXPIRED: frozenset(),
        Status.CANCELLED: frozenset(),
        Status.FAILED: frozenset(),
    }
)


def is_legal(before: Status, after: Status) -> bool:
    return after in MOVES[before]


def check_move(before: Status, after: Status) -> Status:
    if not is_legal(before, after):
        raise IllegalMove("reservation_cannot_become", before=before, after=after)
    return after


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of a reservation's history: what, why and when; the store adds its number."""

    kind: EventKind
    fact: Fact
    at: datetime
    reason: Reason | None = None

    @property
    def message(self) -> str:
        """The words for logs and tests, with times in UTC."""
        return say(self.fact)


ANSWERS = fact("server_answers")
"""The detail of an active reservation of which nothing else is to be said."""


@dataclass(frozen=True, slots=True)
class Spec:
    """Who asked for what. It is written once; what is requested again replaces it as a whole."""

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
    node_labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that its nodes must have."""
    start_at: datetime | None = None
    """Booked for this time: it does not start before."""
    disk_id: DiskId | None = None
    """The disk that is its home; None: a home that is not kept."""
    disk_name: str = ""
    warnings: tuple[Fact, ...] = ()
    """What the user should know of how the request was read."""
    requested_at: datetime | None = None
    """When it was requested again; None: it never was. Its place in the queue counts from here."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How its dev server is set up. It is written once and never changes."""

    image: str = ""
    """The user's own image; empty: the standard one."""
    env_vars: Mapping[str, str] = field(default_factory=dict)
    ssh_public_keys: tuple[str, ...] = ()
    github_user: str = ""
    """Whose keys are authorized besides those that were sent."""
    client_version: str = ""
    time_zone: str = ""
    """Where its owner was when asking, as an IANA name; empty: UTC. Notices have their times in it."""


@dataclass(frozen=True, slots=True)
class State:
    """Where it stands, why, and since when."""

    status: Status = Status.PENDING
    reason: Reason | None = None
    detail: Fact | None = None
    """What belongs to the status, with the names and times of this very case."""
    placed_at: datetime | None = None
    launched_at: datetime | None = None
    expires_at: datetime | None = None
    stopped_at: datetime | None = None
    """Since when it is stopped; None: it is not."""
    used: timedelta = timedelta()
    """How long the servers that it had before were active."""
    ended_at: datetime | None = None
    cleaned_at: datetime | None = None
    last_updated: datetime | None = None
    outcome: Outcome | None = None
    """What became of the command of `gpu-dev submit`; None: there is none, or it has not ended."""
    exit_code: int | None = None

    @property
    def cancelled_at(self) -> datetime | None:
        return self.ended_at if self.status is Status.CANCELLED else None


@dataclass(frozen=True, slots=True)
class Location:
    """Where it runs."""

    members: tuple[Member, ...] = ()
    """Its part on each node, by rank; none before it is placed."""
    port_slot: str = ""
    """The ready address that goes with the placement; see `ports.cluster.Snapshot`."""
    volume_id: VolumeId | None = None
    """The volume of its disk, once its server is there."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """While it waits: when and where it will start, as admission planned it last."""

    queue_position: int | None = None
    estimated_start_at: datetime | None = None
    """When it starts at the latest, by the plan. Failures aside, it moves earlier only."""
    planned_nodes: tuple[NodeName, ...] = ()
    """Where the plan keeps room for it from then on."""
    likely_start: tuple[datetime, datetime] | None = None
    """The window in which it will probably start; None where too little is known."""
    last_queue_update: datetime | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """What its controller has done and need not repeat."""

    warned_minutes: int | None = None
    """The nearest warning that was sent for the present end."""
    told_notices: tuple[Fact, ...] | None = None
    """The notices that stand on the server; None until it was first seen to."""
    extension_error: Fact | None = None
    """Why the last extension was refused."""
    oom_count: int = 0
    last_oom_at: datetime | None = None
    progress: Fact | None = None
    """What the cluster last said of its start, if anything."""
    progress_at: datetime | None = None
    """When that was first seen; None: the cluster does not show a server yet."""
    stale_since: datetime | None = None
    """Since when a waiting request that admission does not renew is driven, and when it was last."""
    driven_at: datetime | None = None
    kept_until: datetime | None = None
    """Until then it is not ended for being idle."""
    idle_warned_at: datetime | None = None
    """When it was warned that nobody uses it, and what was told."""
    idle_warning: Fact | None = None
    drain_warning: Fact | None = None
    """What was told of its nodes being taken out of service; None: they stay."""


@dataclass(frozen=True, slots=True)
class Activity:
    """How it was used when that was last measured."""

    usage_at: datetime | None = None
    idle_since: datetime | None = None
    """None: it was used then."""
    signals: Fact | None = None
    """What was measured, first the signal that decides."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """Its parts: each changes for its own reasons, and is written by a statement of its own.

    `version` grows with every change of state and location; forecast, memory and activity do not count.
    """

    id: ReservationId
    spec: Spec
    settings: Settings = field(default_factory=Settings)
    state: State = field(default_factory=State)
    location: Location = field(default_factory=Location)
    forecast: Forecast = field(default_factory=Forecast)
    memory: Memory = field(default_factory=Memory)
    activity: Activity = field(default_factory=Activity)
    version: int = 1

    @property
    def id8(self) -> str:
        return id8(self.id)

    @property
    def is_gang(self) -> bool:
        return self.spec.node_count > 1

    @property
    def gpus_per_node(self) -> int:
        return self.spec.gpu_count // self.spec.node_count

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        return tuple(member.node for member in self.location.members)

    @property
    def node(self) -> NodeName | None:
        """Where rank 0 is."""
        return self.location.members[0].node if self.location.members else None

    @property
    def address(self) -> SshAddress | None:
        return self.location.members[0].address if self.location.members else None

    @property
    def host_keys(self) -> tuple[str, ...]:
        return self.location.members[0].host_keys if self.location.members else ()

    @property
    def waits_since(self) -> datetime:
        return self.spec.requested_at or self.spec.created_at

    @property
    def is_waiting(self) -> bool:
        return self.state.status in WAITING

    @property
    def is_placed(self) -> bool:
        return self.state.status in PLACED

    @property
    def is_live(self) -> bool:
        return self.state.status in LIVE

    @property
    def is_ended(self) -> bool:
        return self.state.status in TERMINAL

    @property
    def is_cleaned(self) -> bool:
        return self.state.cleaned_at is not None

    @property
    def holds_room(self) -> bool:
        """Takes GPUs of its nodes: placed, or ended with something of it still to be cleaned away."""
        return bool(self.location.members) and not self.is_cleaned


def queue(reservation: Reservation, reason: Reason, detail: Fact) -> Reservation:
    """Into the queue, from `pending` or back from a placement that did not hold."""
    state = replace(
        reservation.state,
        status=check_move(reservation.state.status, Status.QUEUED),
        reason=reason,
        detail=detail,
        placed_at=None,
    )
    location = replace(reservation.location, members=(), port_slot="")
    return replace(reservation, state=state, location=location)


def place(
    reservation: Reservation, nodes: tuple[NodeName, ...], now: datetime, port_slot: str = ""
) -> Reservation:
    """On these nodes, one for each rank. What an earlier start has shown is no news of this one."""
    state = replace(
        reservation.state,
        status=check_move(reservation.state.status, Status.PREPARING),
        reason=None,
        detail=fact("reservation_starting", nodes=nodes),
        placed_at=now,
    )
    members = tuple(Member(node) for node in nodes)
    return replace(
        reservation,
        state=state,
        location=replace(reservation.location, members=members, port_slot=port_slot),
        forecast=_without_forecast(reservation),
        memory=replace(reservation.memory, progress=None, progress_at=None),
    )


def activate(
    reservation: Reservation,
    members: tuple[Member, ...],
    now: datetime,
    volume_id: VolumeId | None = None,
) -> Reservation:
    """The server answers; only now the reserved time starts to run. `volume_id` is that of its disk."""
    state = replace(
        reservation.state,
        status=check_move(reservation.state.status, Status.ACTIVE),
        reason=None,
        detail=ANSWERS,
        launched_at=now,
        expires_at=now + reservation.spec.duration,
    )
    # In a home of its own stands nothing; on a disk there may be what its last user was told.
    told = () if reservation.spec.disk_id is None else None
    return replace(
        reservation,
        state=state,
        location=replace(reservation.location, members=members, volume_id=volume_id),
        memory=replace(reservation.memory, told_notices=told),
    )


def end(
    reservation: Reservation, status: Status, reason: Reason, now: datetime, detail: Fact | None = None
) -> Reservation:
    """Into a terminal state. It is written before anything is taken away."""
    state = replace(
        reservation.state,
        status=check_move(reservation.state.status, status),
        reason=reason,
        detail=detail or reason_fact(reason),
        ended_at=now,
    )
    return replace(reservation, state=state, forecast=_without_forecast(reservation))


def tell(reservation: Reservation, detail: Fact) -> Reservation:
    """The same reservation, with something else to say about it."""
    return replace(reservation, state=replace(reservation.state, detail=detail))


def clean(reservation: Reservation, now: datetime) -> Reservation:
    """Nothing of it is left in the cluster."""
    return replace(reservation, state=replace(reservation.state, cleaned_at=now))


def _without_forecast(reservation: Reservation) -> Forecast:
    return Forecast(last_queue_update=reservation.forecast.last_queue_update)
