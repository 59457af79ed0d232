"""What would become of a request, which ones like it would start sooner, and whether a booking is accepted.

It is found on the plan that admission would make now, so what is foretold is what happens if nobody else
comes first. Nothing changes by it. A booking is a request for a time of one's own choice: it is accepted only
if nobody's promise moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from gpudev.domain.capacity import has_labels
from gpudev.domain.catalogue import GpuType
from gpudev.domain.errors import Conflict, Invalid
from gpudev.domain.expiry import MIN_DURATION
from gpudev.domain.names import ReservationId, UserId
from gpudev.domain.plans.promises import Situation, make_promises
from gpudev.domain.plans.waiting_reasons import WaitingReasons
from gpudev.domain.queue import NO_HABITS, Habits, in_order
from gpudev.domain.reservation import Reservation, Spec
from gpudev.domain.schedule.grid import FOREVER, Grid
from gpudev.texts.fact import Fact
from gpudev.texts.vocabulary import Reason

_PARTS_OF_LENGTH = (0.5, 0.25, 0.125)
_HALF_HOUR = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class Foreseen:
    """When a request would start. No start: it is not known, or it never would."""

    spec: Spec
    start: datetime | None
    starts_now: bool
    reason: Reason | None = None
    detail: Fact | None = None
    likely_start: tuple[datetime, datetime] | None = None


class Foresight:
    """The plan of one GPU type, to be asked and never changed."""

    def __init__(
        self, situation: Situation, waiting: tuple[Reservation, ...], habits: Habits = NO_HABITS
    ) -> None:
        self._situation = situation
        self._promises = make_promises(situation, in_order(waiting))
        self._reasons = WaitingReasons(situation, self._promises)
        self._habits = habits

    def foresee(self, spec: Spec) -> Foreseen:
        request = _request_for(spec, self._situation.now)
        slot = self._promises.plan.find(self._situation.ask_of(request))
        if slot is not None and slot.start == self._promises.plan.origin:
            return Foreseen(spec, self._situation.now, starts_now=True)
        reason, detail = self._reasons.explain(request, slot, is_takeable=self._is_takeable(request))
        start = self._situation.policy.grid.time_of(slot.start) if slot else None
        return Foreseen(
            spec,
            start,
            starts_now=False,
            reason=reason,
            detail=detail,
            likely_start=self._likely(spec, start),
        )

    def stays_until(self, holder: Reservation) -> datetime | None:
        """How long a running reservation may go on before somebody was promised its room; None: for ever."""
        plan, slots = self._promises.plan, self._situation.gpu_type.slots_for(holder.gpus_per_node)
        in_service = {room.name for room in self._situation.rooms}
        free_from = self._situation.free_from(holder)
        ends = [plan.stays_free_until(node, slots, free_from) for node in holder.nodes if node in in_service]
        allowed = plan.allowed_until(holder.spec.username, slots * holder.spec.node_count, free_from)
        step = min([*ends, allowed])
        policy = self._situation.policy
        return policy.grid.time_of(step) - policy.grace if step < FOREVER else None

    def _likely(self, spec: Spec, start: datetime | None) -> tuple[datetime, datetime] | None:
        if start is None or spec.start_at is not None:
            return None
        slots = max(1, spec.gpu_count)
        likely = self._habits.find_likely_start(self._situation.now, start, slots, spec.duration)
        return (likely.earliest, likely.latest) if likely else None

    def _is_takeable(self, request: Reservation) -> bool:
        wanted = self._situation.gpu_type.slots_for(request.gpus_per_node)
        fitting = [
            room
            for room in self._situation.rooms
            if room.slots >= wanted and has_labels(room.labels, request.spec.node_labels)
        ]
        return len(fitting) >= request.spec.node_count


def is_sooner(one: Foreseen, other: Foreseen) -> bool:
    return one.start is not None and (other.start is None or one.start < other.start)


def list_smaller(spec: Spec, gpu_type: GpuType) -> Iterator[Spec]:
    """The same with fewer GPUs, the most first."""
    for nodes in range(spec.node_count - 1, 1, -1):
        yield replace(spec, gpu_count=nodes * gpu_type.gpus_per_node, node_count=nodes)
    for count in reversed(gpu_type.counts_on_one_node):
        if count < spec.gpu_count:
            yield replace(spec, gpu_count=count, node_count=1)


def list_shorter(spec: Spec) -> Iterator[Spec]:
    """The same for a shorter time, in whole half hours, the longest first."""
    for part in _PARTS_OF_LENGTH:
        shorter = spec.duration * part // _HALF_HOUR * _HALF_HOUR
        if shorter >= MIN_DURATION:
            yield replace(spec, duration=shorter)


def _request_for(spec: Spec, now: datetime) -> Reservation:
    """At the end of the line, as a request that comes now would be."""
    return Reservation(ReservationId("preview"), replace(spec, user_id=UserId(0), name="", created_at=now))


FURTHEST = timedelta(days=30)


def check_start(start_at: datetime, now: datetime, grid: Grid) -> datetime:
    """The time on the grid at which it would start. Refused if it has passed or is too far away."""
    if start_at.tzinfo is None:
        raise Invalid("start_without_zone", start=start_at.isoformat(), code="bad_start")
    if start_at < now:
        raise Invalid("booking_in_the_past", start=start_at, code="booking_in_the_past")
    if start_at > now + FURTHEST:
        raise Invalid("booking_too_far", start=start_at, days=FURTHEST.days, code="booking_too_far")
    return grid.time_of(grid.step_after(start_at))


def check_booking(foreseen: Foreseen, start_at: datetime) -> None:
    """Refuse what cannot start when it was asked for; the nearest time is told."""
    if foreseen.start == start_at or (foreseen.starts_now and foreseen.start and foreseen.start >= start_at):
        return
    spec = foreseen.spec
    if foreseen.start is None:
        raise Conflict(
            "booking_never_possible", gpu_count=spec.gpu_count, gpu_type=spec.gpu_type, code="no_room_then"
        )
    raise Conflict(
        "booking_has_no_room",
        gpu_count=spec.gpu_count,
        gpu_type=spec.gpu_type,
        start=start_at,
        nearest=foreseen.start,
        code="no_room_then",
    )
