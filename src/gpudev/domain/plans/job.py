"""What the end of a submitted command means for its reservation."""

from __future__ import annotations

from dataclasses import replace

from gpudev.domain.expiry import is_expired
from gpudev.domain.job import Job, find_outcome, tell_end
from gpudev.domain.plans.turn import KeepJobOutput, Observation, Plan, Record
from gpudev.domain.reservation import Event, Reservation
from gpudev.domain.server import ObservedServer, ServerPhase
from gpudev.texts.fact import Fact, fact, join, reason_fact
from gpudev.texts.vocabulary import EventKind, Outcome, Reason, Status


def find_server_to_ask(seen: Observation) -> ObservedServer | None:
    """The server whose command is to be looked at: until that has ended, and once more before it goes.

    A silent cluster is not asked: everything else in the turn, such as warnings, would wait for its timeout.
    """
    reservation, server = seen.reservation, seen.server
    if not seen.cluster_answers:
        return None
    if (
        reservation.state.status is not Status.ACTIVE
        or server is None
        or server.phase is not ServerPhase.READY
    ):
        return None
    is_going = bool(seen.due_operations) or is_expired(reservation, seen.now, seen.policy)
    return server if reservation.state.outcome is None or is_going else None


def plan_finish(seen: Observation) -> tuple[Record, ...]:
    """Tell once that the command has ended while its reservation goes on."""
    job = seen.job
    if job is None or not job.has_ended or seen.reservation.state.outcome is not None:
        return ()
    outcome = find_outcome(job, seen.reservation.state.status)
    state = replace(seen.reservation.state, outcome=outcome, exit_code=job.exit_code)
    after = replace(seen.reservation, state=state)
    told = join(tell_end(job, outcome), _tell_place(seen))
    return (Record(seen.reservation, after, Event(EventKind.FINISHED, told, seen.now)),)


def note_outcome(ended: Reservation, job: Job | None) -> Reservation:
    """A reservation that ends, with what became of its command."""
    if job is None:
        return ended
    outcome = find_outcome(job, ended.state.status)
    return replace(ended, state=replace(ended.state, outcome=outcome, exit_code=job.exit_code))


def is_finished(seen: Observation) -> bool:
    """Its owner gives it back because its command has ended and its results are there."""
    job = seen.job
    return job is not None and job.has_ended and job.is_fetched and job.stopped is not Outcome.STOPPED


def describe_end(seen: Observation, status: Status, reason: Reason, why: Fact | None = None) -> Fact:
    """Why it ends, how its command ended, and where the files are if they were not fetched."""
    before = why or reason_fact(reason)
    if seen.job is None:
        return before
    told = tell_end(seen.job, find_outcome(seen.job, status))
    first = None if reason is Reason.COMMAND_FINISHED else before
    return join(first, told, _tell_place(seen))


def keep_output(seen: Observation) -> Plan:
    return (KeepJobOutput(seen.reservation.id, seen.job.output),) if seen.job is not None else ()


def _tell_place(seen: Observation) -> Fact | None:
    reservation = seen.reservation
    if seen.job is None or seen.job.is_fetched or not reservation.spec.disk_name:
        return None
    return fact("command_output_on_disk", disk=reservation.spec.disk_name, reservation=reservation.id)
