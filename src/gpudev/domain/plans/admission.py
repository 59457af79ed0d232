"""Which waiting requests of one GPU type get their place now, and what the others are told.

First come, first served: the first request that does not fit holds back those behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from gpudev.domain.capacity import (
    Availability,
    Held,
    Node,
    could_hold,
    count_free_slots,
    measure_availability,
)
from gpudev.domain.catalogue import GpuType
from gpudev.domain.eta import Forecast, Forecaster
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.lifecycle import Status
from gpudev.domain.names import NodeName, ReservationId, UserId, id8
from gpudev.domain.placement import choose_nodes, choose_port_slot, keep_near
from gpudev.domain.plans.actions import AdmissionAction, Record, SetQueuePlaces
from gpudev.domain.queueing import QueuePlace, has_moved, in_order
from gpudev.domain.reasons import EXPLANATIONS, Reason
from gpudev.domain.reservation import Event, EventKind, Reservation, place, queue


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
    port_slots: tuple[str, ...] = ()
    """Ready addresses that nobody has yet; a server without one gets an address made for it."""
    disk_busy: frozenset[ReservationId] = frozenset()
    """Those of the waiting whose disk an earlier reservation has not given back yet."""
    disk_zones: Mapping[ReservationId, str] = field(default_factory=dict)
    """Where the disks of the waiting are, of those that are somewhere."""
    disks_stay: bool = False
    """A disk cannot be used anywhere else; otherwise it moves, which takes its time."""


def plan_admission(seen: Observation) -> tuple[AdmissionAction, ...]:
    free = count_free_slots(seen.nodes, seen.gpu_type, seen.holders, seen.shown)
    placed = _place_in_order(seen, free)
    admitted = {record.before.id for record in placed}
    left = tuple(request for request in in_order(seen.waiting) if request.id not in admitted)
    places = _queue_places(seen, free, [record.after for record in placed], left)
    first_seen = tuple(
        _queueing(request, places[request.id], seen.now)
        for request in left
        if request.status is Status.PENDING
    )
    changed = tuple(
        places[request.id]
        for request in left
        if has_moved(request, places[request.id]) or _is_old(request, seen)
    )
    return (*placed, *first_seen, *([SetQueuePlaces(changed)] if changed else []))


def predict_availability(seen: Observation, plan: tuple[AdmissionAction, ...]) -> Availability:
    """The room that is left once the plan is carried out, and when a newcomer would start."""
    records = [action for action in plan if isinstance(action, Record)]
    placed = [record.after for record in records if record.after.holds_room]
    admitted = {reservation.id for reservation in placed}
    holders = (*(holder for holder in seen.holders if holder.holds_room), *placed)
    left = tuple(request for request in in_order(seen.waiting) if request.id not in admitted)
    free = count_free_slots(seen.nodes, seen.gpu_type, holders, seen.shown)
    newcomer = _make_newcomer(seen)
    line = _list_takeable(seen, (*left, newcomer))
    forecasts = Forecaster(seen.gpu_type, seen.now, seen.policy).forecast(free, holders, line)
    start = forecasts[newcomer.id].start if newcomer.id in forecasts else None
    availability = measure_availability(seen.nodes, seen.gpu_type, holders, seen.shown)
    return replace(availability, next_start_at=start if start != seen.now else None)


def _make_newcomer(seen: Observation) -> Reservation:
    """The smallest request there is, at the end of the line: nobody asked for it, it only measures."""
    return Reservation(
        id=ReservationId("newcomer"),
        user_id=UserId(0),
        username="",
        name="",
        gpu_type=seen.gpu_type.name,
        gpu_count=0 if seen.gpu_type.is_cpu_only else 1,
        duration=timedelta(hours=1),
        created_at=seen.now,
    )


def _place_in_order(seen: Observation, free: dict[NodeName, int]) -> list[Record]:
    """Place from the front until one does not fit; `free` shrinks as room is given away."""
    placed: list[Record] = []
    port_slots = list(seen.port_slots)
    closed: set[NodeName] = set()
    for request in _list_takeable(seen, in_order(seen.waiting)):
        slots = seen.gpu_type.slots_for(request.gpus_per_node)
        open_now = {name: count for name, count in free.items() if name not in closed}
        nodes = _choose_near_its_disk(seen, open_now, request)
        if not nodes and _is_tied(seen, request):
            # It holds back those behind it only where it can be itself.
            closed |= keep_near(free, _zones(seen), seen.disk_zones[request.id]).keys()
            continue
        if not nodes:
            break
        for node in nodes:
            free[node] -= slots
        after = place(request, nodes, seen.now, choose_port_slot(port_slots, request.id))
        port_slots = [one for one in port_slots if one != after.port_slot]
        message = f"Placed on {', '.join(nodes)}."
        placed.append(Record(request, after, Event(EventKind.PLACED, message, seen.now)))
    return placed


def _choose_near_its_disk(
    seen: Observation, free: Mapping[NodeName, int], request: Reservation
) -> tuple[NodeName, ...]:
    """Where its disk is, if there is room; else, if the disk can move, anywhere."""
    slots = seen.gpu_type.slots_for(request.gpus_per_node)
    near = keep_near(free, _zones(seen), seen.disk_zones.get(request.id, ""))
    nodes = choose_nodes(near, slots, request.node_count)
    return nodes if nodes or _is_tied(seen, request) else choose_nodes(free, slots, request.node_count)


def _is_tied(seen: Observation, request: Reservation) -> bool:
    return seen.disks_stay and request.id in seen.disk_zones


def _list_nodes(seen: Observation, request: Reservation) -> tuple[Node, ...]:
    """Those that it can be on at all."""
    zone = seen.disk_zones[request.id] if _is_tied(seen, request) else ""
    return tuple(node for node in seen.nodes if not zone or node.zone == zone)


def _zones(seen: Observation) -> dict[NodeName, str]:
    return {node.name: node.zone for node in seen.nodes}


def _list_takeable(seen: Observation, requests: tuple[Reservation, ...]) -> tuple[Reservation, ...]:
    """Those that nodes in service could take if they were empty; the others wait, and hold back nobody.

    The same goes for one that waits for its disk.
    """
    return tuple(
        request
        for request in requests
        if request.id not in seen.disk_busy and could_hold(_list_nodes(seen, request), seen.gpu_type, request)
    )


def _queue_places(
    seen: Observation,
    free: Mapping[NodeName, int],
    just_placed: list[Reservation],
    left: tuple[Reservation, ...],
) -> dict[ReservationId, QueuePlace]:
    holders = (*(holder for holder in seen.holders if holder.holds_room), *just_placed)
    line = _list_takeable(seen, left)
    forecasts = Forecaster(seen.gpu_type, seen.now, seen.policy).forecast(free, holders, line)
    place_in_line = {request.id: number for number, request in enumerate(line)}
    places: dict[ReservationId, QueuePlace] = {}
    for position, request in enumerate(left, start=1):
        forecast = forecasts.get(request.id)
        is_busy = request.id in seen.disk_busy
        reason = Reason.DISK_BUSY if is_busy else _reason_for(place_in_line.get(request.id))
        places[request.id] = QueuePlace(
            reservation_id=request.id,
            position=position,
            estimated_start_at=forecast.start if forecast else None,
            reason=reason,
            detail=_explain(request, reason, forecast),
        )
    return places


def _reason_for(place_in_line: int | None) -> Reason:
    """The first in line waits for room, those behind it for their turn."""
    if place_in_line is None:
        return Reason.NO_NODES
    return Reason.WAITING_FOR_CAPACITY if place_in_line == 0 else Reason.WAITING_IN_LINE


def _explain(request: Reservation, reason: Reason, forecast: Forecast | None) -> str:
    """The reason with the names and times of this case. Only the id and end of a blocker are shown."""
    if forecast is None or forecast.last.blocker is None:
        return _GANG_SENTENCES[reason] if request.is_gang else EXPLANATIONS[reason].sentence
    when = f"{forecast.start:%Y-%m-%d %H:%M} UTC"
    blocker = id8(forecast.last.blocker)
    return f"{_in_words(request)}: {forecast.last.node} has room at {when}, when {blocker} ends."


_GANG_SENTENCES = {
    Reason.WAITING_FOR_CAPACITY: "Not enough nodes of this type are free as a whole.",
    Reason.WAITING_IN_LINE: EXPLANATIONS[Reason.WAITING_IN_LINE].sentence,
    Reason.DISK_BUSY: EXPLANATIONS[Reason.DISK_BUSY].sentence,
    Reason.NO_NODES: "Not enough whole nodes of this type are in service.",
}


def _in_words(request: Reservation) -> str:
    if request.gpu_count == 0:
        return f"A {request.gpu_type} slot on one node"
    gpus = f"{request.gpu_count} {request.gpu_type} GPU{'' if request.gpu_count == 1 else 's'}"
    where = f"{request.node_count} whole nodes" if request.is_gang else "one node"
    return f"{gpus} on {where}"


def _queueing(request: Reservation, place_: QueuePlace, now: datetime) -> Record:
    after = queue(request, place_.reason, place_.detail)
    message = f"Waiting at position {place_.position}. {place_.detail}"
    return Record(request, after, Event(EventKind.QUEUED, message, now, place_.reason))


def _is_old(request: Reservation, seen: Observation) -> bool:
    updated = request.last_queue_update
    return updated is None or seen.now - updated >= seen.policy.queue_refresh
