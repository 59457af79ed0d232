"""The plan of one GPU type as it is now: what was promised is kept, and what can be earlier is.

It is made again at every pass from what is stored with each waiting request, so nothing of it can be lost. A
promise is kept unless the room for it is gone: a node left, a start took longer than planned, somebody was
allowed to stay on. Only those who are hit by that are fitted anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from gpudev.domain.capacity import NodeRoom, has_labels
from gpudev.domain.catalogue import GpuType
from gpudev.domain.expiry import TimePolicy, count_steps, room_is_free_at
from gpudev.domain.names import NodeName, ReservationId, id8
from gpudev.domain.policy import NO_SHARES, Shares
from gpudev.domain.quota import count_slots, find_long_limit, make_limit
from gpudev.domain.reservation import Reservation
from gpudev.domain.schedule.grid import FOREVER, Ask, Slot, Step
from gpudev.domain.schedule.plan import Plan
from gpudev.domain.schedule.room import Limit
from gpudev.texts.fact import Fact, fact

_Limit = TypeVar("_Limit", int, Limit)
_PATIENCE = 1
"""For so many steps one whose time has come waits for its room to be cleared, and keeps its promise."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What the plan of a type follows from, but for those who wait."""

    gpu_type: GpuType
    rooms: tuple[NodeRoom, ...]
    holders: tuple[Reservation, ...]
    policy: TimePolicy
    now: datetime
    tied: Mapping[ReservationId, frozenset[NodeName]] = field(default_factory=dict)
    """The nodes of those that can only be on some."""
    shares: Shares = NO_SHARES

    @property
    def origin(self) -> Step:
        return self.policy.grid.step_of(self.now)

    def free_from(self, holder: Reservation) -> Step:
        """The first step at which the room of a holder is free; what is overdue is expected any moment."""
        at = room_is_free_at(holder, self.now, self.policy)
        return max(self.policy.grid.step_after(at), self.origin + 1)

    def ask_of(self, request: Reservation) -> Ask:
        grid = self.policy.grid
        return Ask(
            id=request.id,
            # Who has used less is offered freed room first; where that is not counted, who came first.
            order=(self.shares.used.get(request.spec.user_id, 0.0), request.waits_since),
            slots=self.gpu_type.slots_for(request.gpus_per_node),
            length=count_steps(request.spec.duration, self.policy),
            node_count=request.spec.node_count,
            not_before=grid.step_after(request.spec.start_at) if request.spec.start_at else 0,
            owner=request.spec.username,
            only_on=self._list_fitting(request),
        )

    def find_limit(self, username: str) -> int | None:
        """How many slots the user may have at once; None: as many as there are."""
        return self.shares.policy.quotas.find(username, self.gpu_type.name).gpus

    def find_long_limit(self, username: str) -> Limit | None:
        """How many slots the user may hold for long; None: as many as there are."""
        quota = self.shares.policy.quotas.find(username, self.gpu_type.name)
        slots = find_long_limit(quota, sum(room.slots for room in self.rooms), len(self.rooms))
        return None if slots is None else make_limit(slots, self.policy)

    def list_maintenance(self) -> tuple[tuple[NodeRoom, Step, Step], ...]:
        """What is out of service when: never shorter than it was said."""
        grid = self.policy.grid
        return tuple(
            (room, grid.step_of(window.start), grid.step_after(window.end))
            for window in self.shares.policy.maintenance
            for room in self.rooms
            if window.end > self.now and window.concerns(room.name, self.gpu_type.name)
        )

    def _list_fitting(self, request: Reservation) -> frozenset[NodeName] | None:
        """The nodes that it can be on by its labels and its disk; None: any."""
        tied = self.tied.get(request.id)
        if not request.spec.node_labels:
            return tied
        named = frozenset(
            room.name for room in self.rooms if has_labels(room.labels, request.spec.node_labels)
        )
        return named if tied is None else named & tied


@dataclass(frozen=True, slots=True)
class Promises:
    plan: Plan
    broken: Mapping[ReservationId, Fact]
    """Those whose promise could not be kept, and why."""


class LeftOfLimits:
    """What users may start at this very moment: their own that are about to end have not ended yet."""

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._held: Counter[str] = Counter()
        for holder in situation.holders:
            self.take(holder)

    def has_room_for(self, request: Reservation) -> bool:
        limit = self._situation.find_limit(request.spec.username)
        return limit is None or self._held[request.spec.username] + count_slots(request) <= limit

    def take(self, reservation: Reservation) -> None:
        self._held[reservation.spec.username] += count_slots(reservation)


def make_promises(situation: Situation, waiting: Sequence[Reservation]) -> Promises:
    """A slot for each of those who wait, given in order, as far as there ever is room for it."""
    plan = _plan_of_holders(situation, waiting)
    broken = _keep(situation, plan, waiting)
    without = [request for request in waiting if request.id in broken or not is_promised(request)]
    plan.compress(map(situation.ask_of, without))
    return Promises(plan, broken)


def is_promised(request: Reservation) -> bool:
    return request.forecast.estimated_start_at is not None and bool(request.forecast.planned_nodes)


def _list_limits(usernames: Iterable[str], find: Callable[[str], _Limit | None]) -> dict[str, _Limit]:
    limits = {username: find(username) for username in usernames}
    return {username: limit for username, limit in limits.items() if limit is not None}


def _plan_of_holders(situation: Situation, waiting: Sequence[Reservation]) -> Plan:
    """The room that is left by those who run, by strangers and by maintenance."""
    grid, origin = situation.policy.grid, situation.origin
    longest = max((situation.ask_of(request).length for request in waiting), default=1)
    lag = int(grid.time_of(origin) < situation.now)
    usernames = {one.spec.username for one in (*waiting, *situation.holders)}
    plan = Plan(
        {room.name: room.slots for room in situation.rooms},
        origin,
        longest=longest,
        lag=lag,
        limits=_list_limits(usernames, situation.find_limit),
        long_limits=_list_limits(usernames, situation.find_long_limit),
    )
    for room in situation.rooms:
        if room.foreign:
            plan.hold(room.name, room.foreign, origin, FOREVER)
    for holder in situation.holders:
        slots, until = situation.gpu_type.slots_for(holder.gpus_per_node), situation.free_from(holder)
        for node in holder.nodes:
            plan.hold(node, slots, origin, until)
        plan.charge(holder.spec.username, slots * holder.spec.node_count, origin, until)
    for room, start, end in situation.list_maintenance():
        plan.hold(room.name, room.slots, start, end)
    return plan


def _keep(situation: Situation, plan: Plan, waiting: Iterable[Reservation]) -> dict[ReservationId, Fact]:
    """Settle everybody where they were promised; those for whom there is no room any more, and why.

    Those who are late already come last: they must not push aside who is not.
    """
    promised = [(request, _slot_of(situation, request)) for request in waiting if is_promised(request)]
    promised.sort(key=lambda pair: pair[1].start < plan.origin)
    broken: dict[ReservationId, Fact] = {}
    for request, slot in promised:
        is_due = plan.origin - _PATIENCE <= slot.start <= plan.origin
        # What is about to be freed is as good as free to one whose time has come.
        from_step = plan.origin + 1 if is_due else max(slot.start, plan.origin)
        if not plan.keep(situation.ask_of(request), slot, from_step=from_step):
            broken[request.id] = _explain_loss(situation, plan, request, slot)
    return broken


def _slot_of(situation: Situation, request: Reservation) -> Slot:
    """Its room as it was promised; one that is late takes as much longer."""
    grid = situation.policy.grid
    start = (
        grid.step_of(request.forecast.estimated_start_at)
        if request.forecast.estimated_start_at
        else situation.origin
    )
    end = start + situation.ask_of(request).length
    if start < situation.origin:
        end = grid.step_after(situation.now) + situation.ask_of(request).length
    return Slot(start, end, request.forecast.planned_nodes)


def _explain_loss(situation: Situation, plan: Plan, request: Reservation, slot: Slot) -> Fact:
    in_service = {room.name for room in situation.rooms}
    for node in slot.nodes:
        if node not in in_service:
            return fact("node_out_of_service", node=node)
    for room, start, end in situation.list_maintenance():
        if room.name in slot.nodes and start < slot.end and slot.start < end:
            since = situation.policy.grid.time_of(start)
            return fact("node_in_maintenance", node=room.name, since=since)
    if situation.find_limit(request.spec.username) is not None and (
        plan.allowed_until(request.spec.username, situation.ask_of(request).all_slots, slot.start) < slot.end
    ):
        return fact("quota_of_gpus", limit=situation.find_limit(request.spec.username))
    overdue = _find_overdue(situation, slot)
    if overdue is not None:
        holder, node = overdue
        return fact("node_held_longer", reservation=id8(holder.id), node=node)
    return fact("node_has_less_room", node=slot.nodes[0])


def _find_overdue(situation: Situation, slot: Slot) -> tuple[Reservation, NodeName] | None:
    """Who is still there when the slot begins: the one that stays longest, and of several the first by id."""
    late = [
        (-situation.free_from(holder), holder.id, holder, node)
        for holder in situation.holders
        for node in holder.nodes
        if node in slot.nodes and situation.free_from(holder) > slot.start
    ]
    return min(late, key=lambda one: one[:2])[2:] if late else None
