"""What to do about one reservation, given everything that is known of it.

Admission (`plans/admission.py`) gives a request its place; everything before and after is decided here.
The order of the questions is the policy: operations of the user first, then the
end of time, then the server, then what its users are told.

A cluster that does not answer says nothing about the server: then only the user and the clock decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import assert_never

from gpudev.domain import expiry
from gpudev.domain.names import NodeName, member_name
from gpudev.domain.operations import Operation, OperationOutcome
from gpudev.domain.plans.active import (
    is_given_up,
    plan_drain,
    plan_extension,
    plan_idleness,
    plan_keep,
    plan_telling,
    plan_warnings,
)
from gpudev.domain.plans.end import (
    discarding,
    ending,
    farewell,
    find_reason,
    plan_failure,
    plan_stop,
    plan_stopped,
    removal,
)
from gpudev.domain.plans.job import describe_end, is_finished, note_outcome, plan_finish
from gpudev.domain.plans.start import (
    becomes_stale_at,
    drive,
    find_end_of_wait,
    is_drive_due,
    plan_preparing,
    waits_too_long_at,
)
from gpudev.domain.plans.turn import (
    DriveAdmission,
    LookAgain,
    Note,
    Observation,
    Plan,
    Record,
    SettleOperations,
    Tell,
)
from gpudev.domain.reservation import ANSWERS, Event, Reservation, clean, tell
from gpudev.domain.server import ObservedServer, ServerPhase
from gpudev.texts.fact import Fact, fact, join, reason_fact
from gpudev.texts.vocabulary import EventKind, OperationKind, OperationStatus, Reason, Status


def plan_reservation(seen: Observation) -> Plan:
    if seen.due_operations:
        return _plan_operations(seen)
    later = [asked.terms.not_before for asked in seen.operations if asked.terms.not_before]
    return _look_by(_plan_state(seen), later)


def _plan_state(seen: Observation) -> Plan:
    match seen.reservation.state.status:
        case Status.PENDING | Status.QUEUED:
            return _plan_waiting(seen)
        case Status.PREPARING:
            return plan_preparing(seen)
        case Status.ACTIVE:
            return _plan_active(seen)
        case Status.STOPPED:
            return plan_stopped(seen)
        case Status.EXPIRED | Status.CANCELLED | Status.FAILED:
            return plan_ended(seen)
        case other:
            assert_never(other)


def end_with_defect(reservation: Reservation, now: datetime) -> Record:
    """What is recorded when our own code failed on a reservation again and again."""
    return ending(reservation, Status.FAILED, Reason.INTERNAL_ERROR, now)


def _plan_operations(seen: Observation) -> Plan:
    """A cancel settles everything else; the cancel of one that has ended is done already."""
    asked = seen.due_operations
    if seen.reservation.is_ended:
        return (SettleOperations(tuple(map(_too_late, asked))), *plan_ended(seen))
    cancels = [operation for operation in asked if operation.kind is OperationKind.CANCEL]
    if not cancels:
        return _plan_operation(seen, asked[0])
    if cancels[0].is_by_admin:
        why = Reason.CANCELLED_BY_ADMIN
    else:
        why = Reason.COMMAND_FINISHED if is_finished(seen) else Reason.CANCELLED_BY_USER
    outcomes = tuple(map(_too_late, asked))
    return farewell(seen, _end_with_job(seen, Status.CANCELLED, why, outcomes=outcomes))


def _end_with_job(
    seen: Observation,
    status: Status,
    why: Reason,
    sentence: Fact | None = None,
    *,
    outcomes: tuple[OperationOutcome, ...] = (),
) -> Record:
    """The end of a reservation whose server could be asked how its command stands."""
    detail = describe_end(seen, status, why, sentence)
    record = ending(seen.reservation, status, why, seen.now, detail, outcomes=outcomes)
    return replace(record, after=note_outcome(record.after, seen.job))


def _plan_operation(seen: Observation, asked: Operation) -> Plan:
    match asked.kind:
        case OperationKind.EXTEND:
            return (plan_extension(seen.reservation, asked, seen.policy, seen.now, seen.drains),)
        case OperationKind.KEEP:
            return (plan_keep(seen.reservation, asked, seen.now),)
        case OperationKind.STOP:
            return _plan_stop(seen, asked)
        case OperationKind.CANCEL:
            return (ending(seen.reservation, Status.CANCELLED, Reason.CANCELLED_BY_USER, seen.now),)
        case other:
            assert_never(other)


def _plan_stop(seen: Observation, asked: Operation) -> Plan:
    """Where there is nothing to record, everything else goes on."""
    plan = plan_stop(seen, asked)
    if any(isinstance(action, Record) for action in plan):
        return plan
    others = [seen.now for other in seen.due_operations if other is not asked]
    return _look_by((*plan, *_plan_state(seen)), others)


def _too_late(asked: Operation) -> OperationOutcome:
    """On a reservation that has ended, or is just being cancelled, nothing else can be carried out."""
    if asked.kind is OperationKind.CANCEL:
        return OperationOutcome(asked.operation_id, OperationStatus.DONE)
    return OperationOutcome(asked.operation_id, OperationStatus.FAILED, fact("reservation_over"))


def _plan_waiting(seen: Observation) -> Plan:
    """A server of a request that waits is left over from a placement that did not hold."""
    reservation, now, policy = seen.reservation, seen.now, seen.policy
    why = find_end_of_wait(reservation, now, policy)
    if why is Reason.QUEUED_TOO_LONG or (why is not None and seen.cluster_answers):
        return (ending(reservation, Status.CANCELLED, why, now), *removal(seen.server))
    next_look = min(
        waits_too_long_at(reservation, policy),
        max(becomes_stale_at(reservation, policy), now + policy.drive_every),
    )
    # Nobody can admit without a cluster: then it is no wonder that the queue stands still.
    if seen.cluster_answers and is_drive_due(reservation, now, policy):
        note = Note(drive(reservation, now, policy))
        return (*removal(seen.server), note, DriveAdmission(reservation.spec.gpu_type), LookAgain(next_look))
    return (*removal(seen.server), LookAgain(next_look))


def _plan_active(seen: Observation) -> Plan:
    if expiry.is_expired(seen.reservation, seen.now, seen.policy):
        return _plan_expiry(seen)
    if not seen.cluster_answers:
        return _plan_running(seen)
    return _plan_end_of_server(seen) or _plan_running(seen)


def _plan_end_of_server(seen: Observation) -> Plan:
    """Nothing if it is whole and in use."""
    if seen.server is None:
        reason = Reason.POD_DELETED if seen.has_node else Reason.NODE_LOST
        return (ending(seen.reservation, Status.FAILED, reason, seen.now),)
    if seen.server.phase is ServerPhase.FAILED:
        return plan_failure(seen, find_reason(seen.server, Reason.SERVER_FAILED))
    if lost := _list_lost(seen.reservation, seen.server):
        return _plan_loss(seen, lost)
    if is_given_up(seen.reservation, seen.now, seen.idle_policy):
        return _plan_idle_end(seen)
    return ()


def _plan_idle_end(seen: Observation) -> Plan:
    signals = seen.reservation.activity.signals
    measured = fact("idle_signals", signals=signals) if signals else None
    sentence = join(reason_fact(Reason.WENT_IDLE), measured)
    return farewell(seen, _end_with_job(seen, Status.EXPIRED, Reason.WENT_IDLE, sentence))


def _plan_expiry(seen: Observation) -> Plan:
    """An extension that was asked for in time wins, also if it is to be carried out a moment later."""
    if any(asked.kind is OperationKind.EXTEND for asked in seen.operations):
        return ()
    return farewell(seen, _end_with_job(seen, Status.EXPIRED, Reason.TIME_IS_UP))


def _plan_running(seen: Observation) -> Plan:
    # Its node may be silent, and then nobody hears a notice: what is wrong is said first.
    news = (
        plan_finish(seen)
        or _warning(seen)
        or plan_warnings(seen.reservation, seen.server, seen.now)
        or plan_drain(seen)
    )
    if news:
        return news
    telling = plan_telling(seen)
    if any(isinstance(action, Tell) for action in telling):
        return telling
    idleness = plan_idleness(seen.reservation, seen.now, seen.idle_policy)
    if any(isinstance(action, Record) for action in idleness):
        return idleness
    due = (
        *(action.at for action in (*telling, *idleness) if isinstance(action, LookAgain)),
        expiry.find_next_warning(seen.reservation, seen.now),
        expiry.ends_at(seen.reservation, seen.policy),
    )
    return _look_by((), (moment for moment in due if moment))


def _warning(seen: Observation) -> Plan:
    """Tell what the user should know of a running server, once; and tell that it is over."""
    server = seen.server
    if server is None:
        return ()
    what = server.warning or (server.detail if server.phase is ServerPhase.CRASHING else None)
    told = seen.reservation.state.detail
    if what is not None and told != (warning := fact("server_warning", what=what)):
        return (_telling(seen, warning, what),)
    is_over = what is None and server.phase is ServerPhase.READY
    if is_over and told is not None and told.key == "server_warning":
        return (_telling(seen, ANSWERS, fact("server_warning_over", what=told.data["what"])),)
    return ()


def _telling(seen: Observation, detail: Fact, what: Fact) -> Record:
    after = tell(seen.reservation, detail)
    return Record(seen.reservation, after, Event(EventKind.WARNING, what, seen.now))


def _plan_loss(seen: Observation, lost: Sequence[tuple[str, NodeName]]) -> Plan:
    """The rest of a gang is of no use without these members, so it ends, too."""
    detail = join(reason_fact(Reason.POD_DELETED), fact("members_gone", members=lost))
    record = ending(seen.reservation, Status.FAILED, Reason.POD_DELETED, seen.now, detail)
    return (record, *removal(seen.server))


def plan_ended(seen: Observation) -> Plan:
    """A creation that was slow may bring a server even after the clean-up: that one goes as well."""
    if not seen.cluster_answers and not seen.reservation.is_cleaned:
        return (LookAgain(seen.now + seen.policy.recheck),)
    if seen.server is not None:
        return (*removal(seen.server), LookAgain(seen.now + seen.policy.recheck))
    if seen.reservation.is_cleaned:
        return ()
    told = fact("reservation_cleaned")
    event = Event(EventKind.CLEANED, told, seen.now, seen.reservation.state.reason)
    record = Record(seen.reservation, clean(seen.reservation, seen.now), event)
    return (*discarding(seen.reservation), record)


def _look_by(plan: Plan, moments: Iterable[datetime]) -> Plan:
    """The plan, with its one next look no later than any of these."""
    looks = [action.at for action in plan if isinstance(action, LookAgain)]
    earliest = min([*looks, *moments], default=None)
    rest = tuple(action for action in plan if not isinstance(action, LookAgain))
    return (*rest, LookAgain(earliest)) if earliest else rest


def _list_lost(reservation: Reservation, server: ObservedServer) -> tuple[tuple[str, NodeName], ...]:
    """The members that are not there any more, each with its node."""
    present = {member.rank for member in server.members}
    return tuple(
        (member_name(reservation.id, rank), node)
        for rank, node in enumerate(reservation.nodes)
        if rank not in present
    )
