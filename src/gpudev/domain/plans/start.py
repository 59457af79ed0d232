"""From the queue to a server that runs.

Admission renews the place of everybody in the queue every few minutes. Where it does not, something is
wrong, and the request is *driven*: admission is woken for its type, again and again. If that goes on for
minutes without effect, although whoever drives it works, the request is cancelled rather than left hanging.
Minutes in which nobody drove do not count: after a day of downtime everybody is waited for anew.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import assert_never

from gpudev.domain import expiry
from gpudev.domain.disk import Disk
from gpudev.domain.errors import Defect
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.plans.end import discarding, ending, find_reason, plan_failure, removal
from gpudev.domain.plans.turn import (
    CreateServer,
    LookAgain,
    Note,
    Observation,
    Plan,
    Record,
)
from gpudev.domain.reservation import ANSWERS, Event, Reservation, activate, queue, tell
from gpudev.domain.server import Cause, HomeVolume, Member, ObservedServer, ServerPhase, ServerSpec
from gpudev.texts.fact import Fact, join, reason_fact
from gpudev.texts.sentences import say
from gpudev.texts.vocabulary import EventKind, Reason, Status
from gpudev.texts.zones import zone_or_utc

_UNFIT_NODE = frozenset({Cause.NODE_LOST, Cause.EVICTED})
"""A server that never answered lost nothing by these: it may start elsewhere."""


def plan_preparing(seen: Observation) -> Plan:
    if not seen.cluster_answers:
        return (LookAgain(seen.now + seen.policy.recheck),)
    if seen.server is not None and _is_usable(seen.reservation, seen.server):
        return (_activation(seen, seen.server),)
    latest, policy = _with_progress(seen), _policy_of(seen)
    if why := expiry.find_end_of_start(latest, seen.now, policy):
        return plan_failure(seen, why)
    last_look = expiry.start_is_given_up_at(latest, policy)
    look_again = LookAgain(min(last_look, seen.now + seen.policy.recheck))
    return (*_progress(seen.reservation, latest), *_plan_start(seen, look_again))


def _policy_of(seen: Observation) -> TimePolicy:
    """A big disk takes its time, without news: what shows none is a server, once there is one."""
    if seen.server is None and seen.disk is not None:
        return replace(seen.policy, progress_limit=seen.policy.start_limit)
    return seen.policy


def _plan_start(seen: Observation, look_again: LookAgain) -> Plan:
    if seen.reservation.state.reason is Reason.PLACEMENT_LOST:
        return _plan_requeueing(
            seen, seen.reservation.state.detail or reason_fact(Reason.PLACEMENT_LOST), look_again
        )
    if seen.server is None:
        return _plan_creation(seen, look_again)
    if _stands_elsewhere(seen.reservation, seen.server):
        return (*removal(seen.server), look_again)
    return _plan_by_phase(seen, seen.server, look_again)


def _plan_creation(seen: Observation, look_again: LookAgain) -> Plan:
    """A server is made once its disk is ready; one whose disk fails is never given an empty home instead."""
    disk = seen.disk
    if disk is None or disk.is_ready_for(seen.reservation.id):
        return (CreateServer(_spec_of(seen)), look_again)
    if disk.problem:
        detail = join(reason_fact(Reason.DISK_FAILED), disk.problem)
        return (ending(seen.reservation, Status.FAILED, Reason.DISK_FAILED, seen.now, detail),)
    return (look_again,)


def _plan_by_phase(seen: Observation, server: ObservedServer, look_again: LookAgain) -> Plan:
    match server.phase:
        case ServerPhase.STARTING | ServerPhase.READY:
            creation = () if _is_whole(seen.reservation, server) else (CreateServer(_spec_of(seen)),)
            return (*creation, look_again)
        case ServerPhase.STOPPING:
            return (look_again,)
        case ServerPhase.UNPLACEABLE:
            return _plan_requeueing(seen, _why_lost(server), look_again)
        case ServerPhase.FAILED if server.cause in _UNFIT_NODE:
            return _plan_requeueing(seen, _why_lost(server), look_again)
        case ServerPhase.FAILED | ServerPhase.CRASHING:
            return plan_failure(seen, find_reason(server, Reason.START_FAILED))
        case other:
            assert_never(other)


def _with_progress(seen: Observation) -> Reservation:
    """With what the cluster says of its start, if it says something new; the user sees it, too."""
    server = seen.server
    if server is None or server.phase is not ServerPhase.STARTING:
        return seen.reservation
    before = seen.reservation.memory
    if server.progress == before.progress and before.progress_at is not None:
        return seen.reservation
    memory = replace(before, progress=server.progress, progress_at=seen.now)
    noted = replace(seen.reservation, memory=memory)
    return tell(noted, server.progress) if server.progress else noted


def _progress(before: Reservation, latest: Reservation) -> Plan:
    """That a server is there at all is noted; what is said of it is an event."""
    if latest == before:
        return ()
    if not latest.memory.progress or latest.memory.progress_at is None:
        return (Note(latest),)
    return (
        Record(before, latest, Event(EventKind.PROGRESS, latest.memory.progress, latest.memory.progress_at)),
    )


def _plan_requeueing(seen: Observation, why: Fact, look_again: LookAgain) -> Plan:
    """It never answered, so nothing is lost by taking it away before the move is written.

    What is left of a gang has room that nobody else may be promised: the move waits until it is gone.
    """
    reservation, server = seen.reservation, seen.server
    if server is None or not server.takes_room:
        return (*removal(server), *discarding(reservation), _requeueing(reservation, why, seen.now))
    if reservation.state.reason is Reason.PLACEMENT_LOST:
        return (*removal(server), look_again)
    state = replace(reservation.state, reason=Reason.PLACEMENT_LOST, detail=why)
    after = replace(reservation, state=state)
    record = Record(reservation, after, Event(EventKind.PROGRESS, why, seen.now))
    return (*removal(server), record, look_again)


def _why_lost(server: ObservedServer) -> Fact:
    return join(reason_fact(Reason.PLACEMENT_LOST), server.detail)


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


def _activation(seen: Observation, server: ObservedServer) -> Record:
    members = tuple(Member(member.node, member.address, member.host_keys) for member in server.members)
    after = activate(seen.reservation, members, seen.now, seen.disk.volume.volume_id if seen.disk else None)
    return Record(seen.reservation, after, Event(EventKind.ACTIVE, ANSWERS, seen.now))


def _requeueing(reservation: Reservation, why: Fact, now: datetime) -> Record:
    after = queue(reservation, Reason.PLACEMENT_LOST, why)
    return Record(reservation, after, Event(EventKind.REQUEUED, why, now, Reason.PLACEMENT_LOST))


def _spec_of(seen: Observation) -> ServerSpec:
    reservation = seen.reservation
    return ServerSpec(
        reservation_id=reservation.id,
        reservation_name=reservation.spec.name,
        username=reservation.spec.username,
        nodes=reservation.nodes,
        gpu_type=reservation.spec.gpu_type,
        gpu_count=reservation.spec.gpu_count,
        share=seen.gpu_type.share_of(reservation.gpus_per_node),
        duration=reservation.spec.duration,
        ssh_public_keys=reservation.settings.ssh_public_keys,
        env_vars=reservation.settings.env_vars,
        image=reservation.settings.image,
        port_slot=reservation.location.port_slot,
        home=_home_of(seen.disk),
        notice=_notice_of(reservation),
    )


def _notice_of(reservation: Reservation) -> str:
    """It becomes part of the server, where it is read at each login."""
    zone = zone_or_utc(reservation.settings.time_zone)
    return " ".join(say(warning, zone) for warning in reservation.spec.warnings)


def _home_of(disk: Disk | None) -> HomeVolume | None:
    if disk is None:
        return None
    if disk.volume.volume_id is None:
        raise Defect("ready_disk_without_volume", name=disk.spec.name)
    return HomeVolume(disk.volume.volume_id, disk.spec.name, disk.spec.size_gb, disk.volume.zone)


def is_stale(reservation: Reservation, now: datetime, policy: TimePolicy) -> bool:
    return now >= becomes_stale_at(reservation, policy)


def becomes_stale_at(reservation: Reservation, policy: TimePolicy) -> datetime:
    """A change of the request, its return to the queue for example, is news of it as well."""
    known = (
        reservation.waits_since,
        reservation.state.last_updated,
        reservation.forecast.last_queue_update,
    )
    return max(moment for moment in known if moment is not None) + policy.stale_after


def waits_too_long_at(reservation: Reservation, policy: TimePolicy) -> datetime:
    """Counted from the time that it was promised or booked, where it has one."""
    known = (reservation.waits_since, reservation.spec.start_at, reservation.forecast.estimated_start_at)
    return max(moment for moment in known if moment is not None) + policy.queue_limit


def find_end_of_wait(reservation: Reservation, now: datetime, policy: TimePolicy) -> Reason | None:
    """Why the request is not waited for any longer; None while it is."""
    if now >= waits_too_long_at(reservation, policy):
        return Reason.QUEUED_TOO_LONG
    if not is_stale(reservation, now, policy) or not _is_being_driven(reservation, now, policy):
        return None
    since = reservation.memory.stale_since
    return Reason.QUEUE_STALLED if since is not None and now - since >= policy.drive_limit else None


def drive(reservation: Reservation, now: datetime, policy: TimePolicy) -> Reservation:
    """The request with the note that it is driven now, and since when without a longer break."""
    since = reservation.memory.stale_since if _is_being_driven(reservation, now, policy) else None
    memory = replace(reservation.memory, stale_since=since or now, driven_at=now)
    return replace(reservation, memory=memory)


def is_drive_due(reservation: Reservation, now: datetime, policy: TimePolicy) -> bool:
    if not is_stale(reservation, now, policy):
        return False
    last = reservation.memory.driven_at
    return last is None or not last <= now < last + policy.drive_every


def _is_being_driven(reservation: Reservation, now: datetime, policy: TimePolicy) -> bool:
    """Driven before, for the same reason, and not interrupted for more than a turn or two."""
    last = reservation.memory.driven_at
    stale_at = becomes_stale_at(reservation, policy)
    return last is not None and last >= stale_at and now - last <= 3 * policy.drive_every
