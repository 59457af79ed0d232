"""What becomes of the wish for more time: a later end, or why not. Either way it is history."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from gpudev.domain.drain import Drain, check_stays
from gpudev.domain.errors import Rejected
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.extension import extend
from gpudev.domain.operations import Operation, OperationOutcome
from gpudev.domain.plans.actions import Record
from gpudev.domain.reservation import Event, Reservation
from gpudev.texts.fact import Fact, fact
from gpudev.texts.vocabulary import EventKind, OperationStatus


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
