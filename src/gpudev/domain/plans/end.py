"""How a reservation ends or stops, and what is taken away with it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from gpudev.domain.errors import Conflict, Rejected
from gpudev.domain.expiry import stop_ends_at
from gpudev.domain.operations import Operation, OperationOutcome, release, stop
from gpudev.domain.plans.job import keep_output
from gpudev.domain.plans.turn import (
    DeleteServer,
    DiscardPortSlot,
    ListHome,
    LookAgain,
    Observation,
    Plan,
    Record,
    SettleOperations,
)
from gpudev.domain.reservation import Event, Reservation, end
from gpudev.domain.server import Cause, ObservedServer, ServerPhase
from gpudev.texts.fact import Fact, fact, join, reason_fact
from gpudev.texts.vocabulary import EventKind, OperationStatus, Reason, Status

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


def plan_stop(seen: Observation, asked: Operation) -> Plan:
    """End the server and keep the reservation; what cannot be stopped stays as it is."""
    reservation = seen.reservation
    reason = Reason.STOPPED_BY_ADMIN if asked.is_by_admin else Reason.STOPPED_BY_USER
    done = OperationOutcome(asked.operation_id, OperationStatus.DONE)
    if reservation.state.status is Status.STOPPED:
        return (SettleOperations((done,)),)
    try:
        _check_command(seen)
        after = stop(reservation, reason, seen.now)
    except Rejected as refusal:
        failed = OperationOutcome(asked.operation_id, OperationStatus.FAILED, refusal.fact)
        return (SettleOperations((failed,)),)
    told = fact("reservation_stopped", left=after.spec.duration)
    return farewell(
        seen, Record(reservation, after, Event(EventKind.STOPPED, told, seen.now, reason), (done,))
    )


def _check_command(seen: Observation) -> None:
    if seen.job is not None and not seen.job.has_ended:
        raise Conflict("command_runs", reservation=seen.reservation.id, code="command_runs")


def plan_stopped(seen: Observation) -> Plan:
    """Take the server away, then wait for its owner, though not for ever."""
    reservation, now, policy = seen.reservation, seen.now, seen.policy
    if seen.server is not None:
        return (*removal(seen.server), LookAgain(now + policy.recheck))
    if reservation.location.members:
        return _plan_release(seen)
    ends_at = stop_ends_at(reservation, policy) or now
    if now >= ends_at:
        return (ending(reservation, Status.EXPIRED, Reason.STOPPED_TOO_LONG, now),)
    warn_at = ends_at - policy.stopped_warning
    if reservation.memory.warned_minutes is not None or now < warn_at:
        return (LookAgain(ends_at if now >= warn_at else warn_at),)
    told = fact("stopped_ends_soon", name=reservation.spec.name, reservation=reservation.id, end=ends_at)
    minutes = int(policy.stopped_warning.total_seconds() // 60)
    after = replace(reservation, memory=replace(reservation.memory, warned_minutes=minutes))
    return (Record(reservation, after, Event(EventKind.WARNED, told, now)),)


def _plan_release(seen: Observation) -> Plan:
    """A cluster that does not answer says nothing about the server."""
    if not seen.cluster_answers:
        return (LookAgain(seen.now + seen.policy.recheck),)
    reservation = seen.reservation
    event = Event(EventKind.RELEASED, fact("reservation_released"), seen.now, reservation.state.reason)
    return (*discarding(reservation), Record(reservation, release(reservation), event))


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
