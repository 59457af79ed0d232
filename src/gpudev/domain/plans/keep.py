"""What becomes of the wish to keep an idle server: until then it is not ended for being idle."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from gpudev.domain.operations import Operation, OperationOutcome
from gpudev.domain.plans.actions import Record
from gpudev.domain.reservation import Event, Reservation
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import EventKind, OperationStatus


def plan_keep(reservation: Reservation, asked: Operation, now: datetime) -> Record:
    until = asked.requested_at + (asked.terms.length or timedelta())
    until_then = max(until, reservation.memory.kept_until or until)
    after = replace(reservation, memory=replace(reservation.memory, kept_until=until_then))
    kept = fact("reservation_kept", until=until, reason=asked.terms.reason)
    outcome = OperationOutcome(asked.operation_id, OperationStatus.DONE)
    return Record(reservation, after, Event(EventKind.KEPT, kept, now), (outcome,))
