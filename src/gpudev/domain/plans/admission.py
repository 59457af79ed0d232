"""Which waiting requests of one GPU type start now, and what the others are promised.

First come, first served on a kept plan: a later request starts before an earlier one only where that does not
move it. See `promises` for the plan and `waiting_reasons` for the words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from gpudev.domain.capacity import (
    Availability,
    Held,
    Node,
    could_hold,
    count_free_slots,
    measure_availability,
    measure_rooms,
)
from gpudev.domain.catalogue import GpuType
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.names import ReservationId, UserId, id8
from gpudev.domain.plans.promises import LeftOfLimits, Promises, Situation, make_promises
from gpudev.domain.plans.turn import AdmissionAction, Record, SetQueuePlaces
from gpudev.domain.plans.waiting_reasons import WaitingReasons
from gpudev.domain.policy import NO_SHARES, Shares
from gpudev.domain.queue import NO_HABITS, Habits, LikelyStart, QueuePlace, has_moved, in_order
from gpudev.domain.reservation import Event, Reservation, Spec, place, queue
from gpudev.domain.schedule.grid import Slot
from gpudev.texts.fact import fact, reason_fact
from gpudev.texts.vocabulary import EventKind, Reason, Status


def choose_port_slot(free: Sequence[str], reservation_id: ReservationId) -> str:
    """One of the ready addresses, or none. Passes for other types choose at the same time: not the same."""
    return free[int(id8(reservation_id), 16) % len(free)] if free else ""


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything of one GPU type: who waits, who holds room, and what the cluster shows."""

    gpu_type: GpuType
    waiting: tuple[Reservation, ...]
    holders: tuple[Reservation, ...]
    nodes: tuple[Node, ...]
    shown: frozenset[Held]
    """What of the holders the nodes' free slots account for already; see `capacity.list_shown`."""
    policy: TimePolicy
    now: datetime
    habits: Habits = NO_HABITS
    """How long those waited who have started."""
    port_slots: tuple[str, ...] = ()
    """Ready addresses that nobody has yet; a server without one gets an address made for it."""
    disk_busy: frozenset[ReservationId] = frozenset()
    """Those of the waiting whose disk an earlier reservation has not given back yet."""
    tied: Mapping[ReservationId, str] = field(default_factory=dict)
    """Those that can only be in one zone, since their disk is there and cannot leave it."""
    shares: Shares = NO_SHARES
    """How users share what there is, and what they have used."""


def plan_admission(seen: Observation) -> tuple[AdmissionAction, ...]:
    line = in_order(seen.waiting)
    situation = situation_of(seen)
    promises = make_promises(situation, _list_takeable(seen, line))
    placed = _place_due(seen, promises, line)
    admitted = {record.before.id for record in placed}
    left = tuple(request for request in line if request.id not in admitted)
    reasons = WaitingReasons(situation, promises, admitted)
    places = _queue_places(seen, promises, reasons, left)
    told = tuple(record for request in left for record in _tell(seen, promises, request, places[request.id]))
    changed = tuple(
        places[request.id]
        for request in left
        if has_moved(request, places[request.id]) or _is_old(request, seen)
    )
    return (*placed, *told, *([SetQueuePlaces(changed)] if changed else []))


def situation_of(seen: Observation) -> Situation:
    holders = tuple(holder for holder in seen.holders if holder.holds_room)
    labels = seen.shares.policy.node_labels
    rooms = measure_rooms(seen.nodes, seen.gpu_type, holders, seen.shown, labels)
    tied = {one: frozenset(node.name for node in _nodes_for(seen, one)) for one in seen.tied}
    return Situation(seen.gpu_type, rooms, holders, seen.policy, seen.now, tied, seen.shares)


def _nodes_for(seen: Observation, reservation_id: ReservationId) -> tuple[Node, ...]:
    """Those that it can be on at all."""
    zone = seen.tied.get(reservation_id)
    return tuple(node for node in seen.nodes if zone is None or node.zone == zone)


def predict_availability(seen: Observation, plan: tuple[AdmissionAction, ...]) -> Availability:
    """The room that is left once the plan is carried out, and when a newcomer would start."""
    after = _carry_out(seen, plan)
    newcomer = _make_newcomer(seen)
    situation = situation_of(after)
    promises = make_promises(situation, (*_list_takeable(seen, in_order(after.waiting)), newcomer))
    slot = promises.plan.find_slot(newcomer.id)
    nodes = tuple(_as_in_service(node, seen) for node in seen.nodes)
    availability = measure_availability(nodes, seen.gpu_type, after.holders, seen.shown)
    return replace(availability, next_start_at=_start_of(slot, seen) if slot else None)


def _as_in_service(node: Node, seen: Observation) -> Node:
    """During its maintenance a node has nothing to give."""
    windows = seen.shares.policy.maintenance
    is_out = any(window.is_on(seen.now) and window.concerns(node.name, node.gpu_type) for window in windows)
    return replace(node, is_schedulable=False) if is_out else node


def find_next_start(seen: Observation, plan: tuple[AdmissionAction, ...]) -> datetime | None:
    """When the next of those who wait is to start, so that somebody looks then."""
    starts = (request.forecast.estimated_start_at for request in _carry_out(seen, plan).waiting)
    return min((start for start in starts if start and start > seen.now), default=None)


def _carry_out(seen: Observation, plan: tuple[AdmissionAction, ...]) -> Observation:
    """The observation as it will be once the plan has been written."""
    records = [action.after for action in plan if isinstance(action, Record)]
    placed = tuple(reservation for reservation in records if reservation.holds_room)
    admitted = {reservation.id for reservation in placed}
    told = {
        place_.reservation_id: place_
        for action in plan
        if isinstance(action, SetQueuePlaces)
        for place_ in action.places
    }
    waiting = tuple(
        _at_place(request, told.get(request.id)) for request in seen.waiting if request.id not in admitted
    )
    holders = (*(holder for holder in seen.holders if holder.holds_room), *placed)
    return replace(seen, waiting=waiting, holders=holders)


def _at_place(request: Reservation, told: QueuePlace | None) -> Reservation:
    if told is None:
        return request
    forecast = replace(
        request.forecast, estimated_start_at=told.estimated_start_at, planned_nodes=told.planned_nodes
    )
    return replace(request, forecast=forecast)


def _make_newcomer(seen: Observation) -> Reservation:
    """The smallest request there is, at the end of the line: nobody asked for it, it only measures."""
    spec = Spec(
        user_id=UserId(0),
        username="",
        name="",
        gpu_type=seen.gpu_type.name,
        gpu_count=0 if seen.gpu_type.is_cpu_only else 1,
        duration=timedelta(hours=1),
        created_at=seen.now,
    )
    return Reservation(ReservationId("newcomer"), spec)


def _place_due(seen: Observation, promises: Promises, line: tuple[Reservation, ...]) -> list[Record]:
    """Start those whose time has come and whose room is there; `free` shrinks as it is given away."""
    free = count_free_slots(seen.nodes, seen.gpu_type, seen.holders, seen.shown)
    left = LeftOfLimits(situation_of(seen))
    placed: list[Record] = []
    port_slots = list(seen.port_slots)
    for request in line:
        slot = promises.plan.find_slot(request.id)
        slots = seen.gpu_type.slots_for(request.gpus_per_node)
        if (
            slot is None
            or slot.start > promises.plan.origin
            or any(free[node] < slots for node in slot.nodes)
            or not left.has_room_for(request)
        ):
            continue
        for node in slot.nodes:
            free[node] -= slots
        left.take(request)
        after = place(request, slot.nodes, seen.now, choose_port_slot(port_slots, request.id))
        port_slots = [one for one in port_slots if one != after.location.port_slot]
        told = fact("reservation_placed", nodes=slot.nodes)
        placed.append(Record(request, after, Event(EventKind.PLACED, told, seen.now)))
    return placed


def _list_takeable(seen: Observation, requests: tuple[Reservation, ...]) -> tuple[Reservation, ...]:
    """Those that nodes in service could take if they were empty; the others wait, and hold back nobody.

    The same goes for one that waits for its disk.
    """
    kinds = {_kind_of(request): request for request in requests}
    takeable = {kind for kind, one in kinds.items() if could_hold(seen.nodes, seen.gpu_type, one)}
    return tuple(
        request
        for request in requests
        if request.id not in seen.disk_busy
        and _kind_of(request) in takeable
        and (request.id not in seen.tied or _has_nodes(seen, request))
    )


def _kind_of(request: Reservation) -> tuple[object, ...]:
    """Requests of one kind fit the same nodes."""
    return request.gpus_per_node, request.spec.node_count, *sorted(request.spec.node_labels.items())


def _has_nodes(seen: Observation, request: Reservation) -> bool:
    return could_hold(_nodes_for(seen, request.id), seen.gpu_type, request)


def _queue_places(
    seen: Observation, promises: Promises, reasons: WaitingReasons, left: tuple[Reservation, ...]
) -> dict[ReservationId, QueuePlace]:
    takeable = {request.id for request in _list_takeable(seen, left)}
    places: dict[ReservationId, QueuePlace] = {}
    for position, request in enumerate(left, start=1):
        slot = promises.plan.find_slot(request.id)
        if request.id in seen.disk_busy:
            reason, detail = Reason.DISK_BUSY, reason_fact(Reason.DISK_BUSY)
        else:
            reason, detail = reasons.explain(request, slot, is_takeable=request.id in takeable)
        places[request.id] = QueuePlace(
            reservation_id=request.id,
            position=position,
            estimated_start_at=seen.policy.grid.time_of(slot.start) if slot else None,
            reason=reason,
            detail=detail,
            planned_nodes=slot.nodes if slot else (),
            likely=_likely_start(seen, request, slot),
        )
    return places


def _likely_start(seen: Observation, request: Reservation, slot: Slot | None) -> LikelyStart | None:
    """A booking starts at its time, and of what is not promised nothing is known."""
    if slot is None or request.spec.start_at is not None:
        return None
    promised_at = seen.policy.grid.time_of(slot.start)
    slots = max(1, request.spec.gpu_count)
    return seen.habits.find_likely_start(request.waits_since, promised_at, slots, request.spec.duration)


def _start_of(slot: Slot, seen: Observation) -> datetime | None:
    """None: now."""
    start = seen.policy.grid.time_of(slot.start)
    return start if start > seen.now else None


def _tell(seen: Observation, promises: Promises, request: Reservation, place_: QueuePlace) -> list[Record]:
    """Who is new here is told its place, and who starts later than promised is told why."""
    if request.state.status is Status.PENDING:
        return [_queueing(request, place_, seen.now)]
    why, promised = promises.broken.get(request.id), request.forecast.estimated_start_at
    if why is None or promised is None:
        return []
    start = place_.estimated_start_at
    if start is not None and start <= promised:
        return []
    told = (
        fact("reservation_replanned", promised=promised, start=start, why=why)
        if start
        else fact("reservation_without_start", promised=promised, why=why)
    )
    state = replace(request.state, reason=place_.reason, detail=place_.detail)
    after = replace(request, state=state)
    return [Record(request, after, Event(EventKind.REPLANNED, told, seen.now, place_.reason))]


def _queueing(request: Reservation, place_: QueuePlace, now: datetime) -> Record:
    after = queue(request, place_.reason, place_.detail)
    told = fact("reservation_queued", position=place_.position, why=place_.detail)
    return Record(request, after, Event(EventKind.QUEUED, told, now, place_.reason))


def _is_old(request: Reservation, seen: Observation) -> bool:
    updated = request.forecast.last_queue_update
    return updated is None or seen.now - updated >= seen.policy.queue_refresh
