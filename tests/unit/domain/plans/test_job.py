"""What a plan does about the command of a reservation: it is written down with the end, or before it."""

from __future__ import annotations

import pytest

from gpudev.domain.job import Job
from gpudev.domain.operations import Operation
from gpudev.domain.plans.reservation import plan_reservation
from gpudev.domain.plans.turn import DeleteServer, KeepJobOutput, Observation, Record
from gpudev.domain.server import ServerPhase
from gpudev.texts.vocabulary import EventKind, Outcome, Reason, Status
from tests.support.domain_values import make_cancel, make_reservation
from tests.support.reservation_plans import KNOWN, MOMENTS, observe
from tests.support.words import words_of

FETCHED = Job(7, is_fetched=True, output="words")


def active(
    job: Job | None, *operations: Operation, moment: str = "before its end", **changes: object
) -> Observation:
    reservation = make_reservation(status=Status.ACTIVE, **{**KNOWN, **changes})
    seen = observe(Status.ACTIVE, ServerPhase.READY, MOMENTS[moment], operations=operations, job=job)
    return Observation(
        reservation, seen.operations, seen.server, seen.gpu_type, seen.policy, seen.now, job=job
    )


def get_record(seen: Observation) -> Record:
    (record,) = (action for action in plan_reservation(seen) if isinstance(action, Record))
    return record


@pytest.mark.parametrize(
    "job, reason, outcome, words",
    [
        (FETCHED, Reason.COMMAND_FINISHED, Outcome.FAILED, "The command finished with exit code 7."),
        (Job(0, is_fetched=True), Reason.COMMAND_FINISHED, Outcome.SUCCEEDED, "exit code 0."),
        (Job(143, Outcome.TIMED_OUT, is_fetched=True), Reason.COMMAND_FINISHED, Outcome.TIMED_OUT, "143)."),
        (Job(143, Outcome.STOPPED, is_fetched=True), Reason.CANCELLED_BY_USER, Outcome.STOPPED, "143)."),
        (Job(0), Reason.CANCELLED_BY_USER, Outcome.SUCCEEDED, "exit code 0."),
        (Job(), Reason.CANCELLED_BY_USER, Outcome.STOPPED, "The command was stopped."),
        (None, Reason.CANCELLED_BY_USER, None, "It was cancelled by its owner."),
    ],
)
def test_who_gives_back_a_finished_command_has_not_cancelled_it(
    job: Job | None, reason: Reason, outcome: Outcome | None, words: str
) -> None:
    after = get_record(active(job, make_cancel())).after
    assert (after.state.status, after.state.reason, after.state.outcome) == (
        Status.CANCELLED,
        reason,
        outcome,
    )
    assert after.state.exit_code == (job.exit_code if job else None)
    assert words_of(after.state.detail).endswith(words)


def test_an_end_is_recorded_as_a_change_of_what_was_seen() -> None:
    """What differs between before and after is written: the outcome has to be among it."""
    seen = active(FETCHED, make_cancel())
    assert get_record(seen).before == seen.reservation


def test_its_output_is_kept_before_its_end_is_recorded_and_the_server_goes() -> None:
    kinds = [type(action) for action in plan_reservation(active(FETCHED, make_cancel()))]
    assert kinds.index(KeepJobOutput) < kinds.index(Record) < kinds.index(DeleteServer)


def test_the_end_of_its_time_is_the_outcome_and_tells_where_the_files_are() -> None:
    after = get_record(active(Job(), moment="after grace", disk_name="work")).after
    assert (after.state.status, after.state.outcome, after.state.exit_code) == (
        Status.EXPIRED,
        Outcome.TIMED_OUT,
        None,
    )
    assert f'on the disk "work" in submit/{after.id8}/files.' in words_of(after.state.detail)


def test_an_end_that_nobody_waits_for_is_told_once() -> None:
    record = get_record(active(Job(3)))
    assert (record.event.kind, record.after.state.status) == (EventKind.FINISHED, Status.ACTIVE)
    assert (record.after.state.outcome, record.after.state.exit_code) == (Outcome.FAILED, 3)
    told = active(Job(3), outcome=Outcome.FAILED, exit_code=3)
    assert not any(isinstance(action, Record) for action in plan_reservation(told))


def test_a_command_that_runs_is_no_news() -> None:
    assert not any(isinstance(action, Record) for action in plan_reservation(active(Job())))
