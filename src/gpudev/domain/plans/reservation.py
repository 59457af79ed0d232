"""What to do about one reservation, given everything that is known of it.

Admission (`plans/admission.py`) gives a request its place; everything before and after is decided here.
The order of the questions is the policy: operations of the user first, then the end of time, then the
server.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from gpudev.domain import expiry
from gpudev.domain.catalogue import GpuType
from gpudev.domain.disk import Disk
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.lifecycle import Status
from gpudev.domain.names import member_name
from gpudev.domain.plans.actions import (
    CreateServer,
    DeleteServer,
    LookAgain,
    Record,
    ReservationAction,
    SettleOperations,
)
from gpudev.domain.reservation import (
    EXPLANATIONS,
    Event,
    EventKind,
    Operation,
    OperationOutcome,
    OperationStatus,
    Reason,
    Reservation,
    activate,
    clean,
    end,
    queue,
)
from gpudev.domain.server import HomeVolume, Member, ObservedServer, ServerPhase, ServerSpec

Plan = tuple[ReservationAction, ...]


@dataclass(frozen=True, slots=True)
class Observation:
    """One read of the database and the cluster. `server` is None only if the cluster said so."""

    reservation: Reservation
    operations: tuple[Operation, ...]
    server: ObservedServer | None
    gpu_type: GpuType
    policy: TimePolicy
    now: datetime
    disk: Disk | None = None
    """The reservation's disk, if it has one."""


def plan_reservation(seen: Observation) -> Plan:
    if seen.operations:
        return _plan_operations(seen)
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
    """Cancel is the one operation so far; the cancel of one that has ended is done already."""
    outcomes = tuple(OperationOutcome(asked.operation_id, OperationStatus.DONE) for asked in seen.operations)
    if seen.reservation.is_ended:
        return (SettleOperations(outcomes), *_plan_ended(seen))
    why = Reason.CANCELLED_BY_ADMIN if seen.operations[0].is_by_admin else Reason.CANCELLED_BY_USER
    record = _ending(seen.reservation, Status.CANCELLED, why, seen.now, outcomes=outcomes)
    return (record, *_removal(seen.server))


def _plan_waiting(seen: Observation) -> Plan:
    """A server of a request that waits is left over from a placement that did not hold."""
    return _removal(seen.server)


def _plan_preparing(seen: Observation) -> Plan:
    given_up_at = expiry.start_is_given_up_at(seen.reservation, seen.policy)
    if seen.server is not None and _is_usable(seen.reservation, seen.server):
        return (_activation(seen.reservation, seen.server, seen.now),)
    if seen.now >= given_up_at:
        return _plan_failure(seen, Reason.START_TIMED_OUT)
    look_again = LookAgain(min(given_up_at, seen.now + seen.policy.recheck))
    if seen.server is None:
        return _plan_creation(seen, look_again)
    if _stands_elsewhere(seen.reservation, seen.server):
        return (*_removal(seen.server), look_again)
    return _plan_start(seen, seen.server, look_again)


def _plan_creation(seen: Observation, look_again: LookAgain) -> Plan:
    """A server is made once its disk is ready; one whose disk fails is never given an empty home instead."""
    disk = seen.disk
    if disk is None or disk.is_ready_for(seen.reservation.id):
        return (CreateServer(_spec_of(seen)), look_again)
    if disk.problem:
        detail = f"{EXPLANATIONS[Reason.DISK_FAILED].sentence} {disk.problem}"
        return (_ending(seen.reservation, Status.FAILED, Reason.DISK_FAILED, seen.now, detail),)
    return (look_again,)


def _plan_start(seen: Observation, server: ObservedServer, look_again: LookAgain) -> Plan:
    match server.phase:
        case ServerPhase.STARTING | ServerPhase.READY:
            creation = () if _is_whole(seen.reservation, server) else (CreateServer(_spec_of(seen)),)
            return (*creation, look_again)
        case ServerPhase.STOPPING:
            return (look_again,)
        case ServerPhase.UNPLACEABLE:
            # It never ran, so nothing is lost by taking it away before the move is written.
            return (*_removal(server), _requeueing(seen.reservation, server, seen.now))
        case ServerPhase.FAILED:
            return _plan_failure(seen, Reason.START_FAILED)
        case other:
            assert_never(other)


def _plan_failure(seen: Observation, reason: Reason) -> Plan:
    words = seen.server.detail if seen.server else ""
    detail = f"{EXPLANATIONS[reason].sentence} {words}".strip()
    record = _ending(seen.reservation, Status.FAILED, reason, seen.now, detail)
    return (record, *_removal(seen.server))


def _plan_active(seen: Observation) -> Plan:
    if expiry.is_expired(seen.reservation, seen.now, seen.policy):
        record = _ending(seen.reservation, Status.EXPIRED, Reason.TIME_IS_UP, seen.now)
        return (record, *_removal(seen.server))
    if seen.server is None:
        return (_ending(seen.reservation, Status.FAILED, Reason.POD_DELETED, seen.now),)
    if seen.server.phase is ServerPhase.FAILED:
        return _plan_failure(seen, Reason.SERVER_FAILED)
    if lost := _list_lost(seen.reservation, seen.server):
        return _plan_loss(seen, lost)
    ends_at = expiry.ends_at(seen.reservation, seen.policy)
    return (LookAgain(ends_at),) if ends_at else ()


def _plan_loss(seen: Observation, lost: tuple[str, ...]) -> Plan:
    """The rest of a gang is of no use without these members, so it ends, too."""
    detail = f"{EXPLANATIONS[Reason.POD_DELETED].sentence} Gone: {', '.join(lost)}."
    record = _ending(seen.reservation, Status.FAILED, Reason.POD_DELETED, seen.now, detail)
    return (record, *_removal(seen.server))


def _plan_ended(seen: Observation) -> Plan:
    """A creation that was slow may bring a server even after the clean-up: that one goes as well."""
    if seen.server is not None:
        return (*_removal(seen.server), LookAgain(seen.now + seen.policy.recheck))
    if seen.reservation.is_cleaned:
        return ()
    message = "Nothing of it is left on the cluster."
    event = Event(EventKind.CLEANED, message, seen.now, seen.reservation.reason)
    return (Record(seen.reservation, clean(seen.reservation, seen.now), event),)


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
        home=_home_of(seen.disk),
        notice=reservation.warning,
    )


def _home_of(disk: Disk | None) -> HomeVolume | None:
    if disk is None:
        return None
    if disk.volume_id is None:
        raise ValueError("A disk that is ready has a volume.")
    return HomeVolume(disk.volume_id, disk.name, disk.size_gb)
