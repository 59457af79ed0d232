"""How a reservation is stopped, waits and goes on."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gpudev.domain.errors import Conflict
from gpudev.domain.job import Job
from gpudev.domain.names import OperationId
from gpudev.domain.operations import Operation, Size, extend, find_allowance, release, resume, stop
from gpudev.domain.plans.turn import DiscardPortSlot, ListHome, LookAgain, Plan, SettleOperations
from gpudev.domain.reservation import Location, Memory, Reservation, activate, place
from gpudev.domain.server import Member, ServerPhase
from gpudev.texts.vocabulary import EventKind, OperationKind, OperationStatus, Reason, Status
from tests.support.domain_values import HOUR, MINUTE, NOW, POLICY, make_reservation
from tests.support.parts import change
from tests.support.reservation_plans import deletions, only_record, plan_for, records
from tests.support.words import words_of

STOP = Operation(OperationId("stop-1"), OperationKind.STOP, NOW)
ACTIVE = make_reservation(
    status=Status.ACTIVE, launched_at=NOW - HOUR, expires_at=NOW + 3 * HOUR, duration=4 * HOUR
)
STOPPED = stop(ACTIVE, Reason.STOPPED_BY_USER, NOW)
FREE = release(STOPPED)


def outcomes(plan: Plan) -> list[OperationStatus]:
    settled = [action.outcomes for action in plan if isinstance(action, SettleOperations)]
    recorded = [record.outcomes for record in records(plan)]
    return [outcome.status for group in (*settled, *recorded) for outcome in group]


def plan_stop(
    reservation: Reservation, phase: ServerPhase | None = ServerPhase.READY, **changes: Any
) -> Plan:
    return plan_for(reservation.state.status, phase, reservation=reservation, operations=(STOP,), **changes)


def test_a_stop_keeps_what_is_left_of_the_time_and_takes_the_server_away() -> None:
    plan = plan_stop(change(ACTIVE, warned_minutes=30))
    record = only_record(plan)
    after = record.after
    assert (after.state.status, after.state.reason) == (Status.STOPPED, Reason.STOPPED_BY_USER)
    assert (after.state.stopped_at, after.state.used, after.spec.duration) == (NOW, HOUR, 3 * HOUR)
    assert (after.state.launched_at, after.state.expires_at, after.state.placed_at) == (None, None, None)
    assert after.memory == Memory()
    assert after.spec.name == ACTIVE.spec.name
    assert after.holds_room, "until its server is gone"
    assert record.event.kind is EventKind.STOPPED
    assert "3 hours" in words_of(record.event.fact)
    assert outcomes(plan) == [OperationStatus.DONE]
    assert len(deletions(plan)) == 1


def test_what_is_on_its_disk_is_listed_before_the_server_goes() -> None:
    plan = plan_stop(change(ACTIVE, disk_id="disk-1"))
    kinds = [type(action) for action in plan]
    assert kinds.index(ListHome) < kinds.index(type(deletions(plan)[0]))


def test_a_stop_by_an_admin_says_so() -> None:
    by_admin = replace(STOP, is_by_admin=True)
    plan = plan_for(Status.ACTIVE, ServerPhase.READY, reservation=ACTIVE, operations=(by_admin,))
    assert only_record(plan).after.state.reason is Reason.STOPPED_BY_ADMIN


@pytest.mark.parametrize("status", [Status.PENDING, Status.QUEUED, Status.PREPARING], ids=str)
def test_only_an_active_reservation_is_stopped(status: Status) -> None:
    plan = plan_for(status, operations=(STOP,))
    assert outcomes(plan) == [OperationStatus.FAILED]
    assert all(record.after.state.status is not Status.STOPPED for record in records(plan))


def test_there_must_be_time_left_to_keep() -> None:
    late = change(ACTIVE, expires_at=NOW + MINUTE / 2)
    assert outcomes(plan_stop(late)) == [OperationStatus.FAILED]
    with pytest.raises(Conflict, match="time of reservation") as refused:
        stop(late, Reason.STOPPED_BY_USER, NOW)
    assert refused.value.code == "time_is_up"


def test_a_clock_that_was_set_back_neither_gives_time_nor_takes_it() -> None:
    early = stop(ACTIVE, Reason.STOPPED_BY_USER, NOW - 2 * HOUR)
    assert (early.state.used, early.spec.duration) == (timedelta(), 4 * HOUR)


def test_a_command_that_runs_is_not_stopped() -> None:
    plan = plan_stop(ACTIVE, job=Job(exit_code=None))
    assert outcomes(plan) == [OperationStatus.FAILED]
    assert deletions(plan) == []


def test_a_second_stop_is_done_already_and_does_not_delay_the_first() -> None:
    plan = plan_stop(STOPPED)
    assert outcomes(plan) == [OperationStatus.DONE]
    assert len(deletions(plan)) == 1


def test_its_room_comes_back_once_the_server_is_gone() -> None:
    holding = change(STOPPED, port_slot="slot-1")
    plan = plan_for(Status.STOPPED, None, reservation=holding)
    record = only_record(plan)
    assert record.after.location == Location()
    assert record.event.kind is EventKind.RELEASED
    assert record.concerns_admission
    assert DiscardPortSlot("slot-1") in plan


def test_a_cluster_that_does_not_answer_says_nothing_about_the_server() -> None:
    plan = plan_for(Status.STOPPED, None, reservation=STOPPED, cluster_answers=False)
    assert plan == (LookAgain(NOW + POLICY.recheck),)


def test_its_owner_is_told_before_it_ends_and_then_it_ends() -> None:
    ends_at = NOW + POLICY.stopped_limit
    early = plan_for(Status.STOPPED, None, reservation=FREE)
    assert early == (LookAgain(ends_at - POLICY.stopped_warning),)
    due = ends_at - POLICY.stopped_warning
    record = only_record(plan_for(Status.STOPPED, None, due, reservation=FREE))
    assert record.event.kind is EventKind.WARNED
    assert "gpu-dev start" in words_of(record.event.fact)
    assert plan_for(Status.STOPPED, None, due, reservation=record.after) == (LookAgain(ends_at),)
    ended = only_record(plan_for(Status.STOPPED, None, ends_at, reservation=record.after)).after
    assert (ended.state.status, ended.state.reason) == (Status.EXPIRED, Reason.STOPPED_TOO_LONG)


def test_it_waits_anew_for_the_gpus_that_it_is_started_with() -> None:
    later = NOW + 24 * HOUR
    after = resume(FREE, Size("a100", 8), later)
    assert (after.state.status, after.state.stopped_at) == (Status.PENDING, None)
    assert (after.spec.gpu_type, after.spec.gpu_count, after.spec.duration) == ("a100", 8, 3 * HOUR)
    assert (after.waits_since, after.spec.created_at) == (later, ACTIVE.spec.created_at)


def test_the_clock_goes_on_and_only_active_time_counts() -> None:
    later = NOW + 24 * HOUR
    placed = place(resume(FREE, Size("a100", 8), later), ACTIVE.nodes, later)
    active = activate(placed, tuple(map(Member, ACTIVE.nodes)), later)
    assert active.state.expires_at == later + 3 * HOUR
    assert find_allowance(active, POLICY) == POLICY.longest - 4 * HOUR
    longest = extend(active, POLICY.longest - 4 * HOUR, POLICY)
    assert find_allowance(longest, POLICY) == timedelta()
    again = stop(active, Reason.STOPPED_BY_USER, later + HOUR)
    assert (again.state.used, again.spec.duration) == (2 * HOUR, 2 * HOUR)


@pytest.mark.parametrize("status", sorted(set(Status) - {Status.STOPPED}), ids=str)
def test_only_a_stopped_reservation_is_started(status: Status) -> None:
    with pytest.raises(Conflict) as refused:
        resume(make_reservation(status=status), Size("t4", 1), NOW)
    assert refused.value.code == "not_stopped"


def test_one_whose_server_still_ends_is_started_later() -> None:
    with pytest.raises(Conflict) as refused:
        resume(STOPPED, Size("t4", 1), NOW)
    assert refused.value.code == "still_stopping"
