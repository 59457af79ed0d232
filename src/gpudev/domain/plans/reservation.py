"""What to do about one reservation, given everything that is known of it.

Admission (`plans/admission.py`) gives a request its place; everything before and after is decided here.
The order of the questions is the policy: operations of the user first (`plans/operations.py`), then the
end of time, then the server, then what its users are told.

A cluster that does not answer says nothing about the server: then only the user and the clock decide.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from gpudev.domain import expiry, waiting
from gpudev.domain.catalogue import GpuType
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.idle import NEVER, IdlePolicy
from gpudev.domain.lifecycle import Status
from gpudev.domain.names import member_name
from gpudev.domain.plans.actions import (
    CreateServer,
    DeleteServer,
    DiscardPortSlot,
    DriveAdmission,
    LookAgain,
    Note,
    Record,
    ReservationAction,
    SettleOperations,
)
from gpudev.domain.plans.extension import plan_extension
from gpudev.domain.plans.idle import is_given_up, plan_idleness
from gpudev.domain.plans.keep import plan_keep
from gpudev.domain.plans.notices import plan_notices
from gpudev.domain.reservation import (
    ANSWERS,
    EXPLANATIONS,
    Event,
    EventKind,
    Operation,
    OperationKind,
    OperationOutcome,
    OperationStatus,
    Reason,
    Reservation,
    activate,
    clean,
    end,
    queue,
    tell,
)
from gpudev.domain.server import Cause, Member, ObservedServer, ServerPhase, ServerSpec

Plan = tuple[ReservationAction, ...]

_WARNING = "Warning: "
_REASONS = {
    Cause.IMAGE: Reason.IMAGE_UNAVAILABLE,
    Cause.NODE_LOST: Reason.NODE_LOST,
    Cause.EVICTED: Reason.EVICTED,
    Cause.OUT_OF_MEMORY: Reason.OUT_OF_MEMORY,
}
_UNFIT_NODE = frozenset({Cause.NODE_LOST, Cause.EVICTED})
"""A server that never answered lost nothing by these: it may start elsewhere."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One read of the database and the cluster.

    `server` is None if the cluster said that there is none, or where it did not answer at all.
    """

    reservation: Reservation
    operations: tuple[Operation, ...]
    server: ObservedServer | None
    gpu_type: GpuType
    policy: TimePolicy
    now: datetime
    cluster_answers: bool = True
    idle_policy: IdlePolicy = NEVER
    has_node: bool = True
    """Whether the nodes of its placement are still part of the cluster."""

    @property
    def due_operations(self) -> tuple[Operation, ...]:
        """One that was to wait a moment has nothing to wait for once the reservation has ended."""
        is_ended = self.reservation.is_ended
        return tuple(asked for asked in self.operations if is_ended or asked.is_due(self.now))


def plan_reservation(seen: Observation) -> Plan:
    if seen.due_operations:
        return _plan_operations(seen)
    later = [asked.terms.not_before for asked in seen.operations if asked.terms.not_before]
    return _look_by(_plan_state(seen), later)


def _plan_state(seen: Observation) -> Plan:
    match seen.reservation.status:
        case Status.PENDING | Status.QUEUED:
            return _plan_waiting(seen)
        case Status.PREPARING:
            return _plan_preparing(seen)
        case Status.ACTIVE:
            return _plan_active(seen)
        case Status.EXPIRED | Status.CANCELLED | Status.FAILED:
            return _plan_ended(seen)
        case other:
            assert_never(other)


def end_with_defect(reservation: Reservation, now: datetime) -> Record:
    """What is recorded when our own code failed on a reservation again and again."""
    return _ending(reservation, Status.FAILED, Reason.INTERNAL_ERROR, now)


def _plan_operations(seen: Observation) -> Plan:
    """A cancel settles everything else; the cancel of one that has ended is done already."""
    asked = seen.due_operations
    if seen.reservation.is_ended:
        return (SettleOperations(tuple(map(_too_late, asked))), *_plan_ended(seen))
    cancels = [operation for operation in asked if operation.kind is OperationKind.CANCEL]
    if not cancels:
        return (_plan_operation(seen, asked[0]),)
    why = Reason.CANCELLED_BY_ADMIN if cancels[0].is_by_admin else Reason.CANCELLED_BY_USER
    outcomes = tuple(map(_too_late, asked))
    record = _ending(seen.reservation, Status.CANCELLED, why, seen.now, outcomes=outcomes)
    return (record, *_removal(seen.server))


def _plan_operation(seen: Observation, asked: Operation) -> Record:
    match asked.kind:
        case OperationKind.EXTEND:
            return plan_extension(seen.reservation, asked, seen.policy, seen.now)
        case OperationKind.KEEP:
            return plan_keep(seen.reservation, asked, seen.now)
        case OperationKind.CANCEL:
            return _ending(seen.reservation, Status.CANCELLED, Reason.CANCELLED_BY_USER, seen.now)
        case other:
            assert_never(other)


def _too_late(asked: Operation) -> OperationOutcome:
    """On a reservation that has ended, or is just being cancelled, nothing else can be carried out."""
    if asked.kind is OperationKind.CANCEL:
        return OperationOutcome(asked.operation_id, OperationStatus.DONE)
    return OperationOutcome(asked.operation_id, OperationStatus.FAILED, "The reservation has ended.")


def _plan_waiting(seen: Observation) -> Plan:
    """A server of a request that waits is left over from a placement that did not hold."""
    reservation, now, policy = seen.reservation, seen.now, seen.policy
    why = waiting.find_end_of_wait(reservation, now, policy)
    if why is Reason.QUEUED_TOO_LONG or (why is not None and seen.cluster_answers):
        return (_ending(reservation, Status.CANCELLED, why, now), *_removal(seen.server))
    next_look = min(
        waiting.waits_too_long_at(reservation, policy),
        max(waiting.becomes_stale_at(reservation, policy), now + policy.drive_every),
    )
    # Nobody can admit without a cluster: then it is no wonder that the queue stands still.
    if seen.cluster_answers and waiting.is_drive_due(reservation, now, policy):
        note = Note(waiting.drive(reservation, now, policy))
        return (*_removal(seen.server), note, DriveAdmission(reservation.gpu_type), LookAgain(next_look))
    return (*_removal(seen.server), LookAgain(next_look))


def _plan_preparing(seen: Observation) -> Plan:
    if not seen.cluster_answers:
        return (LookAgain(seen.now + seen.policy.recheck),)
    if seen.server is not None and _is_usable(seen.reservation, seen.server):
        return (_activation(seen.reservation, seen.server, seen.now),)
    latest = _with_progress(seen)
    if why := expiry.find_end_of_start(latest, seen.now, seen.policy):
        return _plan_failure(seen, why)
    last_look = expiry.start_is_given_up_at(latest, seen.policy)
    look_again = LookAgain(min(last_look, seen.now + seen.policy.recheck))
    return (*_progress(seen.reservation, latest), *_plan_start(seen, look_again))


def _plan_start(seen: Observation, look_again: LookAgain) -> Plan:
    if seen.server is None:
        return (CreateServer(_spec_of(seen)), look_again)
    if _stands_elsewhere(seen.reservation, seen.server):
        return (*_removal(seen.server), look_again)
    return _plan_by_phase(seen, seen.server, look_again)


def _plan_by_phase(seen: Observation, server: ObservedServer, look_again: LookAgain) -> Plan:
    match server.phase:
        case ServerPhase.STARTING | ServerPhase.READY:
            creation = () if _is_whole(seen.reservation, server) else (CreateServer(_spec_of(seen)),)
            return (*creation, look_again)
        case ServerPhase.STOPPING:
            return (look_again,)
        case ServerPhase.UNPLACEABLE:
            return _plan_requeueing(seen, server)
        case ServerPhase.FAILED if server.cause in _UNFIT_NODE:
            return _plan_requeueing(seen, server)
        case ServerPhase.FAILED | ServerPhase.CRASHING:
            return _plan_failure(seen, _reason_for(server, Reason.START_FAILED))
        case other:
            assert_never(other)


def _with_progress(seen: Observation) -> Reservation:
    """With what the cluster says of its start, if it says something new; the user sees it, too."""
    server = seen.server
    if server is None or server.phase is not ServerPhase.STARTING:
        return seen.reservation
    if server.progress == seen.reservation.progress:
        return seen.reservation
    detail = server.progress or seen.reservation.detail
    return replace(seen.reservation, progress=server.progress, progress_at=seen.now, detail=detail)


def _progress(before: Reservation, latest: Reservation) -> Plan:
    """That a server is there at all is noted; what is said of it is an event."""
    if latest == before:
        return ()
    if not latest.progress or latest.progress_at is None:
        return (Note(latest),)
    return (Record(before, latest, Event(EventKind.PROGRESS, latest.progress, latest.progress_at)),)


def _plan_requeueing(seen: Observation, server: ObservedServer) -> Plan:
    """It never answered, so nothing is lost by taking it away before the move is written."""
    record = _requeueing(seen.reservation, server, seen.now)
    return (*_removal(server), *_discarding(seen.reservation), record)


def _reason_for(server: ObservedServer, otherwise: Reason) -> Reason:
    return _REASONS[server.cause] if server.cause else otherwise


def _plan_failure(seen: Observation, reason: Reason) -> Plan:
    words = seen.server.detail if seen.server else ""
    detail = f"{EXPLANATIONS[reason].sentence} {words}".strip()
    record = _ending(seen.reservation, Status.FAILED, reason, seen.now, detail)
    return (record, *_removal(seen.server))


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
        return (_ending(seen.reservation, Status.FAILED, reason, seen.now),)
    if seen.server.phase is ServerPhase.FAILED:
        return _plan_failure(seen, _reason_for(seen.server, Reason.SERVER_FAILED))
    if lost := _list_lost(seen.reservation, seen.server):
        return _plan_loss(seen, lost)
    if is_given_up(seen.reservation, seen.now, seen.idle_policy):
        return _plan_idle_end(seen)
    return ()


def _plan_idle_end(seen: Observation) -> Plan:
    words = f"{EXPLANATIONS[Reason.WENT_IDLE].sentence} {seen.reservation.idle_words}.".strip()
    record = _ending(seen.reservation, Status.EXPIRED, Reason.WENT_IDLE, seen.now, words)
    return (record, *_removal(seen.server))


def _plan_expiry(seen: Observation) -> Plan:
    """An extension that was asked for in time wins, also if it is to be carried out a moment later."""
    if any(asked.kind is OperationKind.EXTEND for asked in seen.operations):
        return ()
    record = _ending(seen.reservation, Status.EXPIRED, Reason.TIME_IS_UP, seen.now)
    return (record, *_removal(seen.server))


def _plan_running(seen: Observation) -> Plan:
    # Its node may be silent, and then nobody hears a notice: what is wrong is said first.
    if news := _warning(seen) or plan_notices(seen.reservation, seen.server, seen.now):
        return news
    idleness = plan_idleness(seen.reservation, seen.now, seen.idle_policy)
    if any(isinstance(action, Record) for action in idleness):
        return idleness
    due = (
        *(action.at for action in idleness if isinstance(action, LookAgain)),
        expiry.find_next_warning(seen.reservation, seen.now),
        expiry.ends_at(seen.reservation, seen.policy),
    )
    return _look_by((), (moment for moment in due if moment))


def _warning(seen: Observation) -> Plan:
    """Tell what the user should know of a running server, once; and tell that it is over."""
    server = seen.server
    if server is None:
        return ()
    words = server.warning or (server.detail if server.phase is ServerPhase.CRASHING else "")
    told = seen.reservation.detail
    if words and told != _WARNING + words:
        return (_telling(seen, _WARNING + words, words),)
    if not words and server.phase is ServerPhase.READY and told.startswith(_WARNING):
        return (_telling(seen, ANSWERS, f"It is over: {told.removeprefix(_WARNING)}"),)
    return ()


def _telling(seen: Observation, detail: str, message: str) -> Record:
    after = tell(seen.reservation, detail)
    return Record(seen.reservation, after, Event(EventKind.WARNING, message, seen.now))


def _plan_loss(seen: Observation, lost: tuple[str, ...]) -> Plan:
    """The rest of a gang is of no use without these members, so it ends, too."""
    detail = f"{EXPLANATIONS[Reason.POD_DELETED].sentence} Gone: {', '.join(lost)}."
    record = _ending(seen.reservation, Status.FAILED, Reason.POD_DELETED, seen.now, detail)
    return (record, *_removal(seen.server))


def _plan_ended(seen: Observation) -> Plan:
    """A creation that was slow may bring a server even after the clean-up: that one goes as well."""
    if not seen.cluster_answers and not seen.reservation.is_cleaned:
        return (LookAgain(seen.now + seen.policy.recheck),)
    if seen.server is not None:
        return (*_removal(seen.server), LookAgain(seen.now + seen.policy.recheck))
    if seen.reservation.is_cleaned:
        return ()
    message = "Nothing of it is left on the cluster."
    event = Event(EventKind.CLEANED, message, seen.now, seen.reservation.reason)
    record = Record(seen.reservation, clean(seen.reservation, seen.now), event)
    return (*_discarding(seen.reservation), record)


def _look_by(plan: Plan, moments: Iterable[datetime]) -> Plan:
    """The plan, with its one next look no later than any of these."""
    looks = [action.at for action in plan if isinstance(action, LookAgain)]
    earliest = min([*looks, *moments], default=None)
    rest = tuple(action for action in plan if not isinstance(action, LookAgain))
    return (*rest, LookAgain(earliest)) if earliest else rest


def _is_usable(reservation: Reservation, server: ObservedServer) -> bool:
    answers = server.phase is ServerPhase.READY and all(member.address for member in server.members)
    return answers and _is_whole(reservation, server)


def _is_whole(reservation: Reservation, server: ObservedServer) -> bool:
    """Every member is there, each on the node that was chosen for its rank."""
    return server.nodes == reservation.nodes


def _stands_elsewhere(reservation: Reservation, server: ObservedServer) -> bool:
    """It is left over from an earlier placement, whose creation came late."""
    return any(
        reservation.nodes[member.rank : member.rank + 1] != (member.node,) for member in server.members
    )


def _list_lost(reservation: Reservation, server: ObservedServer) -> tuple[str, ...]:
    """The members that are not there any more, in words."""
    present = {member.rank for member in server.members}
    return tuple(
        f"{member_name(reservation.id, rank)} on {node}"
        for rank, node in enumerate(reservation.nodes)
        if rank not in present
    )


def _removal(server: ObservedServer | None) -> Plan:
    if server is None or server.phase is ServerPhase.STOPPING:
        return ()
    return (DeleteServer(server.reservation_id, server.uid),)


def _discarding(reservation: Reservation) -> Plan:
    """A slow creation may still bring a server to that address, so it is not given to anybody else."""
    return (DiscardPortSlot(reservation.port_slot),) if reservation.port_slot else ()


def _activation(reservation: Reservation, server: ObservedServer, now: datetime) -> Record:
    members = tuple(Member(member.node, member.address, member.host_keys) for member in server.members)
    after = activate(reservation, members, now)
    return Record(reservation, after, Event(EventKind.ACTIVE, after.detail, now))


def _requeueing(reservation: Reservation, server: ObservedServer, now: datetime) -> Record:
    reason = Reason.PLACEMENT_LOST
    detail = f"{EXPLANATIONS[reason].sentence} {server.detail}".strip()
    after = queue(reservation, reason, detail)
    return Record(reservation, after, Event(EventKind.REQUEUED, detail, now, reason))


_END_EVENTS = {
    Status.EXPIRED: EventKind.EXPIRED,
    Status.CANCELLED: EventKind.CANCELLED,
    Status.FAILED: EventKind.FAILED,
}


def _ending(
    reservation: Reservation,
    status: Status,
    reason: Reason,
    now: datetime,
    detail: str = "",
    *,
    outcomes: tuple[OperationOutcome, ...] = (),
) -> Record:
    after = end(reservation, status, reason, now, detail)
    return Record(reservation, after, Event(_END_EVENTS[status], after.detail, now, reason), outcomes)


def _spec_of(seen: Observation) -> ServerSpec:
    reservation = seen.reservation
    return ServerSpec(
        reservation_id=reservation.id,
        reservation_name=reservation.name,
        username=reservation.username,
        nodes=reservation.nodes,
        gpu_type=reservation.gpu_type,
        gpu_count=reservation.gpu_count,
        share=seen.gpu_type.share_of(reservation.gpus_per_node),
        duration=reservation.duration,
        ssh_public_keys=reservation.ssh_public_keys,
        env_vars=reservation.env_vars,
        image=reservation.image,
        port_slot=reservation.port_slot,
    )
