"""Why a request waits, in words that name the real blocker: whoever ends when its room begins.

Only the id and the end of a blocker are told, which everybody may know. Equal inputs give equal words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from gpudev.domain.names import NodeName, ReservationId, id8
from gpudev.domain.node_labels import in_short
from gpudev.domain.plans.promises import Promises, Situation
from gpudev.domain.quota import LONG
from gpudev.domain.reservation import Reservation
from gpudev.domain.schedule.allowance import Limit
from gpudev.domain.schedule.grid import Step
from gpudev.domain.schedule.slots import Slot
from gpudev.texts.fact import reason_fact
from gpudev.texts.sentences import say
from gpudev.texts.vocabulary import Reason

_GANG_SENTENCES = {
    Reason.WAITING_FOR_CAPACITY: "Not enough nodes of this type are free as a whole.",
    Reason.NO_NODES: "Not enough whole nodes of this type are in service.",
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

    def explain(self, request: Reservation, slot: Slot | None, *, is_takeable: bool) -> tuple[Reason, str]:
        if not is_takeable:
            return _in_general(request, Reason.NO_NODES)
        if slot is None:
            return self._explain_nothing(request)
        if slot.start <= self._plan.origin:
            return Reason.WAITING_FOR_CAPACITY, f"Its time has come; {slot.nodes[0]} is being cleared for it."
        if self._is_booked_for(request, slot):
            return Reason.BOOKED, f"Booked for {self._at(slot.start)} on {', '.join(slot.nodes)}."
        obstacle = self._plan.find_obstacle(self._situation.ask_of(request), slot.start - 1)
        if obstacle is not None:
            explain = self._explain_quota if obstacle.is_strict else self._explain_long_limit
            return Reason.WAITING_FOR_QUOTA, explain(request, slot, obstacle)
        return self._explain_slot(request, slot)

    def _explain_nothing(self, request: Reservation) -> tuple[Reason, str]:
        if self._is_beyond_limit(request):
            return Reason.WAITING_FOR_QUOTA, f"{self._limit_in_words(request)}, fewer than it asks for."
        return _in_general(request, Reason.WAITING_FOR_CAPACITY)

    def _is_beyond_limit(self, request: Reservation) -> bool:
        limit = self._situation.find_limit(request.spec.username)
        return limit is not None and self._situation.ask_of(request).all_slots > limit

    def _limit_in_words(self, request: Reservation) -> str:
        limit = self._situation.find_limit(request.spec.username)
        return f"The quota of {request.spec.username} is {limit} {request.spec.gpu_type} GPUs at once"

    def _explain_quota(self, request: Reservation, slot: Slot, _limit: Limit) -> str:
        words = f"{self._limit_in_words(request)}: there is room in it at {self._at(slot.start)}"
        blocker = self._find_own_end(request, slot.start)
        return f"{words}, when {id8(blocker.id)} ends." if blocker else f"{words}."

    def _explain_long_limit(self, request: Reservation, slot: Slot, limit: Limit) -> str:
        words = (
            f"{request.spec.username} may hold {limit.slots} {request.spec.gpu_type} GPUs for longer than "
            f"{in_hours(LONG)}: there is room in that at {self._at(slot.start)}"
        )
        blocker = self._find_own_end(request, slot.start + limit.tail)
        return f"{words}, when {id8(blocker.id)} has {in_hours(LONG)} left." if blocker else f"{words}."

    def _find_own_end(self, request: Reservation, step: Step) -> _Occupant | None:
        own = self._own_ends.get((request.spec.username, step), ())
        return min((one for one in own if one.id != request.id), default=None)

    def _is_booked_for(self, request: Reservation, slot: Slot) -> bool:
        return request.spec.start_at is not None and slot.start <= self._situation.ask_of(request).not_before

    def _explain_slot(self, request: Reservation, slot: Slot) -> tuple[Reason, str]:
        found = [
            (occupant, node)
            for node in slot.nodes
            for occupant in self._ends.get((node, slot.start), ())
            if occupant.id != request.id
        ]
        maintained = [node for node in slot.nodes if (node, slot.start) in self._maintained]
        if maintained:
            when = f"{maintained[0]} is back from its maintenance at {self._at(slot.start)}"
            return Reason.WAITING_FOR_CAPACITY, f"{in_words(request)}: {when}."
        if not found:
            reason = Reason.WAITING_IN_LINE
            return reason, f"{say(reason_fact(reason))} It starts at {self._at(slot.start)}."
        blocker, node = min(found)
        words = f"{in_words(request)}: {node} has room at {self._at(slot.start)}, when {id8(blocker.id)}"
        if blocker.is_running:
            return Reason.WAITING_FOR_CAPACITY, f"{words} ends."
        return Reason.WAITING_IN_LINE, f"{words}, which starts before, ends."

    def _at(self, step: Step) -> str:
        return f"{self._situation.policy.grid.time_of(step):%Y-%m-%d %H:%M} UTC"


def in_hours(length: timedelta) -> str:
    return f"{length / timedelta(hours=1):g} hours"


def in_words(request: Reservation) -> str:
    if request.spec.gpu_count == 0:
        return f"A {request.spec.gpu_type} slot on one node"
    gpus = f"{request.spec.gpu_count} {request.spec.gpu_type} GPU{'' if request.spec.gpu_count == 1 else 's'}"
    where = f"{request.spec.node_count} whole nodes" if request.is_gang else "one node"
    labels = f" with {in_short(request.spec.node_labels)}" if request.spec.node_labels else ""
    return f"{gpus} on {where}{labels}"


def _in_general(request: Reservation, reason: Reason) -> tuple[Reason, str]:
    return reason, _GANG_SENTENCES[reason] if request.is_gang else say(reason_fact(reason))
