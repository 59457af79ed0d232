"""What happens to a dev server while it runs: notices, more time, idleness, drains.

What its people are told is recorded first, and then told until it is heard. A request for more time or to
keep an idle server is answered in the history, also where the answer is no. A server that nobody uses is
warned, let off again, or ended as by the clock.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from gpudev.domain import expiry
from gpudev.domain.drain import Drain, check_stays, tell_of_drain, tell_of_stay
from gpudev.domain.errors import Rejected
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.idle import Idleness, IdlePolicy, weigh
from gpudev.domain.notices import list_notices, tell_of_end, tell_of_idleness, tell_of_oom
from gpudev.domain.operations import Operation, OperationOutcome, extend
from gpudev.domain.plans.turn import LookAgain, Note, Observation, Plan, Record, Tell
from gpudev.domain.reservation import Event, Reservation
from gpudev.domain.server import ObservedServer, ServerPhase
from gpudev.texts.fact import Fact, fact
from gpudev.texts.vocabulary import EventKind, OperationStatus


def plan_warnings(
    reservation: Reservation, server: ObservedServer | None, now: datetime
) -> tuple[Record, ...]:
    """What there is to say that was not said yet."""
    if server is not None and server.oom_kills > reservation.memory.oom_count:
        return (_count_oom(reservation, server, now),)
    minutes = expiry.find_due_warning(reservation, now)
    return () if minutes is None else (_warning(reservation, minutes, now),)


def plan_telling(seen: Observation) -> Plan:
    """Nothing if everybody knows what there is to know; without a server nobody can be told."""
    reservation, server = seen.reservation, seen.server
    if server is None or server.phase is not ServerPhase.READY:
        return ()
    notices = list_notices(reservation)
    facts = tuple(notice.fact for notice in notices)
    if facts == reservation.memory.told_notices:
        return ()
    if seen.told_at is not None:
        return (LookAgain(seen.told_at),)
    memory = replace(reservation.memory, told_notices=facts)
    return (Tell(reservation.id, server.uid, notices), Note(replace(reservation, memory=memory)))


def _warning(reservation: Reservation, minutes: int, now: datetime) -> Record:
    after = replace(reservation, memory=replace(reservation.memory, warned_minutes=minutes))
    return Record(reservation, after, Event(EventKind.WARNED, tell_of_end(after, minutes), now))


def _count_oom(reservation: Reservation, server: ObservedServer, now: datetime) -> Record:
    last = server.last_oom_at or now
    memory = replace(reservation.memory, oom_count=server.oom_kills, last_oom_at=last)
    after = replace(reservation, memory=memory)
    return Record(
        reservation, after, Event(EventKind.OUT_OF_MEMORY, tell_of_oom(server.oom_kills, last), now)
    )


def is_given_up(reservation: Reservation, now: datetime, policy: IdlePolicy) -> bool:
    """It was warned, nobody came, and the countdown is over."""
    end_at = weigh(reservation, now, policy).end_at
    return end_at is not None and now >= end_at


def plan_idleness(
    reservation: Reservation, now: datetime, policy: IdlePolicy
) -> tuple[Record | LookAgain, ...]:
    state = weigh(reservation, now, policy)
    if state.is_warning_over:
        after = _with_warning(reservation, None, None)
        return (
            Record(reservation, after, Event(EventKind.IDLE_OVER, _tell_why_over(reservation, now), now)),
        )
    if state.warn_at is not None and now >= state.warn_at:
        warning = tell_of_idleness(reservation, now + policy.countdown)
        after = _with_warning(reservation, now, warning)
        return (Record(reservation, after, Event(EventKind.IDLE_WARNED, warning, now)),)
    return tuple(LookAgain(moment) for moment in _list_moments(state))


def _with_warning(reservation: Reservation, at: datetime | None, warning: Fact | None) -> Reservation:
    return replace(reservation, memory=replace(reservation.memory, idle_warned_at=at, idle_warning=warning))


def _list_moments(state: Idleness) -> list[datetime]:
    return [moment for moment in (state.warn_at, state.end_at) if moment is not None]


def _tell_why_over(reservation: Reservation, now: datetime) -> Fact:
    kept_until, idle_since, warned_at = (
        reservation.memory.kept_until,
        reservation.activity.idle_since,
        reservation.memory.idle_warned_at,
    )
    if kept_until is not None and kept_until > now:
        return fact("idle_over_kept", until=kept_until)
    if idle_since is None:
        return fact("idle_over_used", signals=reservation.activity.signals)
    if warned_at is not None and idle_since > warned_at:
        return fact("idle_over_was_used", until=idle_since)
    return fact("idle_over_unknown")


def plan_extension(
    reservation: Reservation,
    asked: Operation,
    policy: TimePolicy,
    now: datetime,
    drains: tuple[Drain, ...] = (),
) -> Record:
    length = asked.terms.length or timedelta()
    try:
        after = extend(reservation, length, policy)
        check_stays(reservation, drains)
    except Rejected as refusal:
        return _refusal(reservation, asked, refusal.fact, now)
    # How much is left depends on what others are promised, which is known where an extension is asked for.
    extended = fact("reservation_extended", length=length, end=after.state.expires_at)
    outcome = OperationOutcome(asked.operation_id, OperationStatus.DONE)
    return Record(reservation, after, Event(EventKind.EXTENDED, extended, now), (outcome,))


def _refusal(reservation: Reservation, asked: Operation, why: Fact, now: datetime) -> Record:
    after = replace(reservation, memory=replace(reservation.memory, extension_error=why))
    outcome = OperationOutcome(asked.operation_id, OperationStatus.FAILED, why)
    return Record(reservation, after, Event(EventKind.EXTENSION_REFUSED, why, now), (outcome,))


def plan_keep(reservation: Reservation, asked: Operation, now: datetime) -> Record:
    until = asked.requested_at + (asked.terms.length or timedelta())
    until_then = max(until, reservation.memory.kept_until or until)
    after = replace(reservation, memory=replace(reservation.memory, kept_until=until_then))
    kept = fact("reservation_kept", until=until, reason=asked.terms.reason)
    outcome = OperationOutcome(asked.operation_id, OperationStatus.DONE)
    return Record(reservation, after, Event(EventKind.KEPT, kept, now), (outcome,))


def plan_drain(seen: Observation) -> tuple[Record, ...]:
    """Nothing if they know already. The notice that stands on the server follows from what is recorded."""
    reservation = seen.reservation
    warning = tell_of_drain(reservation, seen.drains)
    if warning == reservation.memory.drain_warning:
        return ()
    after = replace(reservation, memory=replace(reservation.memory, drain_warning=warning))
    kind = EventKind.NODE_LEAVES if warning else EventKind.NODE_STAYS
    return (Record(reservation, after, Event(kind, warning or tell_of_stay(reservation), seen.now)),)
