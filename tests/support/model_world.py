"""A model of the world that the planners act on: database rows with guarded versions, and a cluster.

It is pure and in memory. It does what the planners ask, as exactly as the real parts do, and nothing they
do not ask: a row changes only if its version is the one that was seen, a server is created or adopted by
its reservation, a deletion names one incarnation, and the cluster's view lags behind until it is
refreshed. What may go wrong (a crash between two actions, a refusal, a death, a late execution) is decided
by the test.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

from gpudev.domain.capacity import Node, list_shown
from gpudev.domain.catalogue import GpuType
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.names import NodeName, OperationId, ReservationId
from gpudev.domain.notices import Notice
from gpudev.domain.operations import Operation, OperationOutcome
from gpudev.domain.plans import admission, reservation
from gpudev.domain.plans.turn import (
    AdmissionAction,
    CreateServer,
    DeleteServer,
    DiscardPortSlot,
    DriveAdmission,
    ListHome,
    LookAgain,
    Note,
    Record,
    ReservationAction,
    SetQueuePlaces,
    SettleOperations,
    Tell,
)
from gpudev.domain.policy import NO_SHARES, Shares
from gpudev.domain.queue import QueuePlace
from gpudev.domain.reservation import Reservation, clean, is_legal
from gpudev.domain.server import ObservedMember, ObservedServer, ServerPhase, ServerSpec
from gpudev.texts.vocabulary import OperationKind
from tests.support.domain_values import ADDRESS, HOST_KEYS, NOW, make_id, make_reservation
from tests.support.parts import change

Action = ReservationAction | AdmissionAction

MAX_ROUNDS = 500

PATIENT = TimePolicy(queue_limit=timedelta(days=1000))


class Fate(StrEnum):
    """What can happen to a server by itself."""

    PROCEEDS = "proceeds"
    """What starts becomes ready, what stops is gone: every member of it."""
    BREAKS = "breaks"
    """One member does."""
    VANISHES = "vanishes"
    """One member does."""


@dataclass
class World:
    gpu_type: GpuType
    slots: dict[NodeName, int]
    policy: TimePolicy = PATIENT
    """Nobody waits too long: whoever can be served is."""
    now: datetime = NOW
    shares: Shares = NO_SHARES
    reads_fresh: bool = True
    """Whether a turn looks at the cluster itself, or at the view where that shows a server."""
    rows: dict[ReservationId, Reservation] = field(default_factory=dict)
    operations: dict[ReservationId, list[Operation]] = field(default_factory=dict)
    servers: dict[ReservationId, ObservedServer] = field(default_factory=dict)
    view: dict[ReservationId, ObservedServer] = field(default_factory=dict)
    out_of_service: set[NodeName] = field(default_factory=set)
    refuses_next: bool = False
    """The next member that is created finds no room."""
    next_creation_dies: bool = False
    """The next creation gets no further than its first member."""
    shown: dict[ReservationId, tuple[Notice, ...]] = field(default_factory=dict)
    """The notices that stand on each server."""
    turned_away: list[ReservationId] = field(default_factory=list)
    """Reservations whose server found no room where the planners had promised some."""
    _count: int = 0

    # What users, nodes and clocks do

    def submit(
        self, gpu_count: int, duration: timedelta, node_count: int = 1, username: str = "ada"
    ) -> ReservationId:
        number = self._next_number()
        row = make_reservation(
            number,
            gpu_type=self.gpu_type.name,
            gpu_count=gpu_count,
            node_count=node_count,
            duration=duration,
            created_at=self.now,
            username=username,
        )
        self.rows[row.id] = row
        return make_id(number)

    def cancel(self, reservation_id: ReservationId) -> None:
        """A new version goes with it, so that no turn in flight can decide without having seen it."""
        operation = Operation(OperationId(f"op-{self._next_number()}"), OperationKind.CANCEL, self.now)
        self.operations.setdefault(reservation_id, []).append(operation)
        row = self.rows[reservation_id]
        self.rows[reservation_id] = replace(row, version=row.version + 1)

    def advance(self, duration: timedelta) -> None:
        self.now += duration

    def refresh_view(self) -> None:
        self.view = dict(self.servers)

    def befall(self, reservation_id: ReservationId, fate: Fate, which: int = 0) -> bool:
        """Let something happen to a server, or to one member of it; False if it cannot meet that fate."""
        server = self.servers.get(reservation_id)
        if server is None:
            return False
        hit = server.members if fate is Fate.PROCEEDS else (server.members[which % len(server.members)],)
        after = [_fate_of(member, fate) if member in hit else member for member in server.members]
        self._set_members(server, [member for member in after if member])
        return after != list(server.members)

    def _set_members(self, server: ObservedServer, members: Sequence[ObservedMember]) -> None:
        if members:
            self.servers[server.reservation_id] = replace(server, members=tuple(members))
        else:
            del self.servers[server.reservation_id]

    # What the planners see

    def observe_reservation(self, reservation_id: ReservationId) -> reservation.Observation:
        server = self.servers.get(reservation_id)
        seen = self.view.get(reservation_id)
        if (
            not self.reads_fresh
            and seen
            and len(seen.members) >= len(self.rows[reservation_id].location.members)
        ):
            # What is not there is believed only after a fresh read, what is there is not questioned.
            server = seen
        return reservation.Observation(
            reservation=self.rows[reservation_id],
            operations=tuple(self.operations.get(reservation_id, ())),
            server=server,
            gpu_type=self.gpu_type,
            policy=self.policy,
            now=self.now,
        )

    def observe_admission(self) -> admission.Observation:
        holders = tuple(row for row in self.rows.values() if row.holds_room)
        return admission.Observation(
            gpu_type=self.gpu_type,
            waiting=tuple(row for row in self.rows.values() if row.is_waiting),
            holders=holders,
            nodes=tuple(self._show_node(name) for name in self.slots),
            shown=list_shown(holders, self.view),
            policy=self.policy,
            now=self.now,
            shares=self.shares,
        )

    def plan_turn(self, reservation_id: ReservationId) -> tuple[ReservationAction, ...]:
        return reservation.plan_reservation(self.observe_reservation(reservation_id))

    def plan_admission(self) -> tuple[AdmissionAction, ...]:
        return admission.plan_admission(self.observe_admission())

    # What carrying out a plan does

    def execute(self, plan: Sequence[Action], survives: int | None = None) -> int:
        """Carry out a plan, or only its first actions, as if the process had died then; how many did much.

        A guarded write that comes too late ends the plan, as it does in a controller.
        """
        done = 0
        for action in plan[:survives]:
            if not self._apply(action):
                break
            done += not isinstance(action, LookAgain)
        return done

    def _apply(self, action: Action) -> bool:
        match action:
            case Record():
                return self._record(action)
            case CreateServer(spec):
                self._create(spec)
            case ListHome():
                pass
            case DeleteServer(reservation_id, uid):
                self._delete(reservation_id, uid)
            case SettleOperations(outcomes):
                self._settle(outcomes)
            case SetQueuePlaces(places):
                self._set_places(places)
            case Tell(reservation_id, uid, notices):
                self._tell(reservation_id, uid, notices)
            case Note(after):
                return self._note(after)
            case DriveAdmission() | DiscardPortSlot() | LookAgain():
                pass
            case other:
                assert_never(other)
        return True

    def _record(self, record: Record) -> bool:
        row = self.rows[record.before.id]
        if row.version != record.before.version:
            return False
        if row.is_ended:
            assert record.after == clean(record.before, record.event.at), "a terminal state was overwritten"
        elif record.after.state.status is not row.state.status:
            assert is_legal(row.state.status, record.after.state.status), "an illegal move was recorded"
        self.rows[row.id] = change(record.after, version=row.version + 1, last_updated=self.now)
        self._settle(record.outcomes)
        return True

    def _note(self, after: Reservation) -> bool:
        if self.rows[after.id].version != after.version:
            return False
        self.rows[after.id] = after
        return True

    def _tell(self, reservation_id: ReservationId, uid: str, notices: tuple[Notice, ...]) -> None:
        server = self.servers.get(reservation_id)
        if server is not None and server.uid == uid:
            self.shown[reservation_id] = notices

    def _settle(self, outcomes: Iterable[OperationOutcome]) -> None:
        settled = {outcome.operation_id for outcome in outcomes}
        for reservation_id, waiting in self.operations.items():
            self.operations[reservation_id] = [one for one in waiting if one.operation_id not in settled]

    def _set_places(self, places: Iterable[QueuePlace]) -> None:
        for place in places:
            row = self.rows[place.reservation_id]
            if row.is_waiting:
                self.rows[row.id] = change(
                    row,
                    queue_position=place.position,
                    estimated_start_at=place.estimated_start_at,
                    planned_nodes=place.planned_nodes,
                    likely_start=place.likely_start,
                    reason=place.reason,
                    detail=place.detail,
                    last_queue_update=self.now,
                )

    def _create(self, spec: ServerSpec) -> None:
        """The members that are not there yet, under the uid of those that are."""
        known = self.servers.get(spec.reservation_id)
        members = {member.rank: member for member in known.members} if known else {}
        missing = [rank for rank in range(len(spec.nodes)) if rank not in members]
        for rank in missing[: 1 if self.next_creation_dies else None]:
            members[rank] = self._create_member(spec, rank)
        self.next_creation_dies = False
        uid = known.uid if known else f"uid-{self._next_number()}"
        in_order = tuple(members[rank] for rank in sorted(members))
        self.servers[spec.reservation_id] = ObservedServer(spec.reservation_id, uid, in_order)

    def _create_member(self, spec: ServerSpec, rank: int) -> ObservedMember:
        node = spec.nodes[rank]
        fits = self._room_on(node) >= self.gpu_type.slots_for(spec.gpus_per_node)
        if not fits:
            self.turned_away.append(spec.reservation_id)
        phase = ServerPhase.STARTING if fits and not self.refuses_next else ServerPhase.UNPLACEABLE
        self.refuses_next = False
        return ObservedMember(node, phase, rank)

    def _delete(self, reservation_id: ReservationId, uid: str) -> None:
        server = self.servers.get(reservation_id)
        if server is None or server.uid != uid:
            return
        taken = [member for member in server.members if member.phase is not ServerPhase.UNPLACEABLE]
        self._set_members(server, [replace(member, phase=ServerPhase.STOPPING) for member in taken])

    # How a healthy world goes on

    def settle(self) -> None:
        """Let everything work, at a standing clock, until nobody has anything left to do."""
        for _ in range(MAX_ROUNDS):
            moved = [self.befall(one, Fate.PROCEEDS) for one in tuple(self.servers)]
            done = [self.execute(self.plan_turn(one)) for one in tuple(self.rows)]
            self.refresh_view()
            if not (any(moved) or any(done) or self.execute(self.plan_admission())):
                return
        raise AssertionError("The planners found no rest.")

    def run_to_the_end(self) -> None:
        """Settle, move the clock to the next time that a plan asks for, and so on until none does.

        Those who wait are passed over: they are served by what happens to the others.
        """
        for _ in range(MAX_ROUNDS):
            self.settle()
            moments = self._list_moments()
            if not moments:
                return
            self.now = min(moments)
        raise AssertionError("The clock moved on and on, and nothing ended.")

    def pass_time(self, duration: timedelta) -> None:
        """Settle at every moment in between that a plan asks for, as controllers do that never miss one."""
        until = self.now + duration
        self.settle()
        while moments := [moment for moment in self._list_moments() if moment <= until]:
            self.now = min(moments)
            self.settle()
        self.now = until
        self.settle()

    def _list_moments(self) -> list[datetime]:
        """When somebody is to be looked at again, and when somebody who waits was promised to start."""
        looks = [
            action.at
            for one, row in self.rows.items()
            if not row.is_waiting
            for action in self.plan_turn(one)
            if isinstance(action, LookAgain)
        ]
        starts = [row.forecast.estimated_start_at for row in self.rows.values() if row.is_waiting]
        return [*looks, *(start for start in starts if start and start > self.now)]

    # What must never be

    def list_overbooked_nodes(self) -> list[NodeName]:
        """Nodes of which the database has promised more than there is."""
        return [name for name, slots in self.slots.items() if self._promised_on(name) > slots]

    def _promised_on(self, node: NodeName) -> int:
        rows = (row for row in self.rows.values() if row.holds_room and node in row.nodes)
        return sum(self.gpu_type.slots_for(row.gpus_per_node) for row in rows)

    def _show_node(self, name: NodeName) -> Node:
        free = self.slots[name] - self._taken_on(name, self.view)
        return Node(name, self.gpu_type.name, self.slots[name], free, name not in self.out_of_service)

    def _room_on(self, name: NodeName) -> int:
        return self.slots[name] - self._taken_on(name, self.servers)

    def _taken_on(self, name: NodeName, servers: dict[ReservationId, ObservedServer]) -> int:
        return sum(
            self.gpu_type.slots_for(self.rows[server.reservation_id].gpus_per_node)
            for server in servers.values()
            for member in server.members
            if member.node == name and member.phase is not ServerPhase.UNPLACEABLE
        )

    def _next_number(self) -> int:
        self._count += 1
        return self._count


def _fate_of(member: ObservedMember, fate: Fate) -> ObservedMember | None:
    """The member afterwards, the same one if this cannot happen to it, None if it is gone."""
    match fate, member.phase:
        case Fate.PROCEEDS, ServerPhase.STARTING:
            return replace(member, phase=ServerPhase.READY, address=ADDRESS, host_keys=HOST_KEYS)
        case (Fate.PROCEEDS, ServerPhase.STOPPING) | (Fate.VANISHES, _):
            return None
        case Fate.BREAKS, ServerPhase.STARTING | ServerPhase.READY:
            return replace(member, phase=ServerPhase.FAILED)
        case _:
            return member
