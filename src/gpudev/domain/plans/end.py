"""How a reservation ends, and what is taken away with it."""

from __future__ import annotations

from datetime import datetime

from gpudev.domain.operations import OperationOutcome
from gpudev.domain.plans.job import keep_output
from gpudev.domain.plans.turn import (
    DeleteServer,
    DiscardPortSlot,
    ListHome,
    Observation,
    Plan,
    Record,
)
from gpudev.domain.reservation import Event, Reservation, end
from gpudev.domain.server import Cause, ObservedServer, ServerPhase
from gpudev.texts.fact import Fact, join, reason_fact
from gpudev.texts.vocabulary import EventKind, Reason, Status

_REASONS = {
    Cause.IMAGE: Reason.IMAGE_UNAVAILABLE,
    Cause.NODE_LOST: Reason.NODE_LOST,
    Cause.EVICTED: Reason.EVICTED,
    Cause.OUT_OF_MEMORY: Reason.OUT_OF_MEMORY,
}


def find_reason(server: ObservedServer, otherwise: Reason) -> Reason:
    return _REASONS[server.cause] if server.cause else otherwise


def plan_failure(seen: Observation, reason: Reason) -> Plan:
    detail = join(reason_fact(reason), seen.server.detail if seen.server else None)
    record = ending(seen.reservation, Status.FAILED, reason, seen.now, detail)
    return (record, *removal(seen.server))


def removal(server: ObservedServer | None) -> Plan:
    if server is None or server.phase is ServerPhase.STOPPING:
        return ()
    return (DeleteServer(server.reservation_id, server.uid),)


def farewell(seen: Observation, record: Record) -> Plan:
    """End a reservation whose server was in use; what is on its disk is listed while somebody can read it.

    The output of its command is kept before the end is recorded: the server of a reservation that has ended
    is never asked again, so a crash in between would lose it.
    """
    server, disk_id = seen.server, seen.reservation.spec.disk_id
    ended = (*keep_output(seen), record)
    if server is None or disk_id is None or server.phase is not ServerPhase.READY:
        return (*ended, *removal(server))
    return (*ended, ListHome(server.reservation_id, server.uid, disk_id), *removal(server))


def discarding(reservation: Reservation) -> Plan:
    """A slow creation may still bring a server to that address, so it is not given to anybody else."""
    return (DiscardPortSlot(reservation.location.port_slot),) if reservation.location.port_slot else ()


_END_EVENTS = {
    Status.EXPIRED: EventKind.EXPIRED,
    Status.CANCELLED: EventKind.CANCELLED,
    Status.FAILED: EventKind.FAILED,
}


def ending(
    reservation: Reservation,
    status: Status,
    reason: Reason,
    now: datetime,
    detail: Fact | None = None,
    *,
    outcomes: tuple[OperationOutcome, ...] = (),
) -> Record:
    told = detail or reason_fact(reason)
    after = end(reservation, status, reason, now, told)
    return Record(reservation, after, Event(_END_EVENTS[status], told, now, reason), outcomes)
