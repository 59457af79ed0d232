"""Why a request waits: the real blocker is whoever ends when its room begins.

Only the first characters of the id and the end of a blocker are told, which everybody may know. Equal inputs
give equal facts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from gpudev.domain.names import NodeName, ReservationId, id8
from gpudev.domain.plans.promises import Promises, Situation
from gpudev.domain.quota import LONG
from gpudev.domain.reservation import Reservation
from gpudev.domain.schedule.grid import Slot, Step
from gpudev.domain.schedule.room import Limit
from gpudev.texts.fact import Fact, Value, fact, join, reason_fact
from gpudev.texts.vocabulary import Reason

_OF_GANGS = {
    Reason.WAITING_FOR_CAPACITY: fact("waiting_for_whole_nodes"),
    Reason.NO_NODES: fact("no_whole_nodes"),
}


@dataclass(frozen=True, slots=True, order=True)
class _Occupant:
    """Who has room on a node until some step. Of several the largest is named, and then the first by id."""

    minus_slots: int
    id: ReservationId
    is_running: bool


class WaitingReasons:
    """Of all who wait for one type, by the plan that they are in."""

    def __init__(
        self, situation: Situation, promises: Promises, just_placed: Iterable[ReservationId] = ()
    ) -> None:
        self._situation = situation
        self._plan = promises.plan
        self._ends: defaultdict[tuple[NodeName, Step], list[_Occupant]] = defaultdict(list)
        self._own_ends: defaultdict[tuple[str, Step], list[_Occupant]] = defaultdict(list)
        for holder in situation.holders:
            slots = situation.gpu_type.slots_for(holder.gpus_per_node)
            until = situation.free_from(holder)
            occupant = _Occupant(-slots, holder.id, is_running=True)
            for node in holder.nodes:
                self._ends[node, until].append(occupant)
            self._own_ends[holder.spec.username, until].append(occupant)
        running = frozenset(just_placed)
        for ask, slot in promises.plan.items():
            one = _Occupant(-ask.slots, ReservationId(ask.id), ask.id in running)
            for node in slot.nodes:
                self._ends[node, slot.end].append(one)
            self._own_ends[ask.owner, slot.end].append(one)
        self._maintained = {(room.name, end) for room, _, end in situation.list_maintenance()}

    def explain(self, request: Reservation, slot: Slot | None, *, is_takeable: bool) -> tuple[Reason, Fact]:
        if not is_takeable:
            return _in_general(request, Reason.NO_NODES)
        if slot is None:
            return self._explain_nothing(request)
        if slot.start <= self._plan.origin:
            return Reason.WAITING_FOR_CAPACITY, fact("waiting_for_clearing", node=slot.nodes[0])
        if self._is_booked_for(request, slot):
            return Reason.BOOKED, fact("booked_for", start=self._at(slot.start), nodes=slot.nodes)
        obstacle = self._plan.find_obstacle(self._situation.ask_of(request), slot.start - 1)
        if obstacle is not None:
            explain = self._explain_quota if obstacle.is_strict else self._explain_long_limit
            return Reason.WAITING_FOR_QUOTA, explain(request, slot, obstacle)
        return self._explain_slot(request, slot)

    def _explain_nothing(self, request: Reservation) -> tuple[Reason, Fact]:
        if self._is_beyond_limit(request):
            return Reason.WAITING_FOR_QUOTA, fact("quota_too_small", **self._quota_of(request))
        return _in_general(request, Reason.WAITING_FOR_CAPACITY)

    def _is_beyond_limit(self, request: Reservation) -> bool:
        limit = self._situation.find_limit(request.spec.username)
        return limit is not None and self._situation.ask_of(request).all_slots > limit

    def _quota_of(self, request: Reservation) -> dict[str, Value]:
        limit = self._situation.find_limit(request.spec.username)
        return {"username": request.spec.username, "limit": limit, "gpu_type": request.spec.gpu_type}

    def _explain_quota(self, request: Reservation, slot: Slot, _limit: Limit) -> Fact:
        known = {**self._quota_of(request), "start": self._at(slot.start)}
        blocker = self._find_own_end(request, slot.start)
        if blocker is None:
            return fact("quota_has_room", **known)
        return fact("quota_has_room_after", blocker=id8(blocker.id), **known)

    def _explain_long_limit(self, request: Reservation, slot: Slot, limit: Limit) -> Fact:
        known: dict[str, Value] = {
            "username": request.spec.username,
            "limit": limit.slots,
            "gpu_type": request.spec.gpu_type,
            "hours": LONG / timedelta(hours=1),
            "start": self._at(slot.start),
        }
        blocker = self._find_own_end(request, slot.start + limit.tail)
        if blocker is None:
            return fact("long_limit_has_room", **known)
        return fact("long_limit_has_room_after", blocker=id8(blocker.id), **known)

    def _find_own_end(self, request: Reservation, step: Step) -> _Occupant | None:
        own = self._own_ends.get((request.spec.username, step), ())
        return min((one for one in own if one.id != request.id), default=None)

    def _is_booked_for(self, request: Reservation, slot: Slot) -> bool:
        return request.spec.start_at is not None and slot.start <= self._situation.ask_of(request).not_before

    def _explain_slot(self, request: Reservation, slot: Slot) -> tuple[Reason, Fact]:
        found = [
            (occupant, node)
            for node in slot.nodes
            for occupant in self._ends.get((node, slot.start), ())
            if occupant.id != request.id
        ]
        maintained = [node for node in slot.nodes if (node, slot.start) in self._maintained]
        if maintained:
            return Reason.WAITING_FOR_CAPACITY, fact(
                "waiting_for_maintenance", node=maintained[0], **self._room_of(request, slot)
            )
        if not found:
            starts = fact("starts_at", start=self._at(slot.start))
            return Reason.WAITING_IN_LINE, join(reason_fact(Reason.WAITING_IN_LINE), starts)
        blocker, node = min(found)
        known = {**self._room_of(request, slot), "node": node, "blocker": id8(blocker.id)}
        if blocker.is_running:
            return Reason.WAITING_FOR_CAPACITY, fact("waiting_for_end", **known)
        return Reason.WAITING_IN_LINE, fact("waiting_for_earlier", **known)

    def _room_of(self, request: Reservation, slot: Slot) -> dict[str, Value]:
        """What is wanted from when on."""
        wanted = fact(
            "wanted_room",
            gpu_count=request.spec.gpu_count,
            gpu_type=request.spec.gpu_type,
            node_count=request.spec.node_count,
            labels=request.spec.node_labels,
        )
        return {"room": wanted, "start": self._at(slot.start)}

    def _at(self, step: Step) -> datetime:
        return self._situation.policy.grid.time_of(step)


def _in_general(request: Reservation, reason: Reason) -> tuple[Reason, Fact]:
    return reason, _OF_GANGS[reason] if request.is_gang else reason_fact(reason)
