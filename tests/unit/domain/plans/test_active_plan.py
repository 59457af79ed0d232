"""What is done about a reservation that is in use."""

from __future__ import annotations

import pytest

from gpudev.domain.disk import DiskId
from gpudev.domain.idle import IdlePolicy
from gpudev.domain.plans.turn import (
    DeleteServer,
    LookAgain,
    Note,
    Record,
    Tell,
)
from gpudev.domain.server import ServerPhase
from gpudev.texts.vocabulary import EventKind, Reason, Status
from tests.support.domain_values import (
    HOUR,
    MINUTE,
    NOW,
    POLICY,
    make_cancel,
    make_reservation,
    make_server,
)
from tests.support.parts import change
from tests.support.reservation_plans import (
    MOMENTS,
    SECOND,
    only_record,
    plan_for,
    records,
    warned,
)
from tests.support.words import words_of


class TestActive:
    def test_running_server_is_left_alone_until_its_first_warning(self) -> None:
        assert plan_for("active", ServerPhase.READY) == (LookAgain(NOW + HOUR - 30 * MINUTE),)

    @pytest.mark.parametrize("minutes", [10, 1])
    def test_next_look_after_the_last_warning_is_when_grace_is_over(self, minutes: int) -> None:
        told = warned(5)
        plan = plan_for("active", ServerPhase.READY, NOW + HOUR - minutes * MINUTE, reservation=told)
        assert plan == (LookAgain(NOW + HOUR + POLICY.grace),)

    def test_time_that_is_up_ends_it_and_then_takes_the_server(self) -> None:
        record, deletion = plan_for("active", ServerPhase.READY, MOMENTS["after grace"])
        assert isinstance(record, Record)
        assert (record.after.state.status, record.after.state.reason) == (Status.EXPIRED, Reason.TIME_IS_UP)
        assert record.after.state.ended_at == MOMENTS["after grace"]
        assert isinstance(deletion, DeleteServer)

    def test_server_that_is_gone_fails_it(self) -> None:
        record = only_record(plan_for("active", None))
        assert (record.after.state.status, record.after.state.reason) == (Status.FAILED, Reason.POD_DELETED)

    def test_server_gone_when_the_time_is_up_is_an_expiry_and_no_failure(self) -> None:
        assert (
            only_record(plan_for("active", None, MOMENTS["after grace"])).after.state.status is Status.EXPIRED
        )

    def test_server_that_broke_fails_it_and_the_words_do_not_say_that_it_never_started(self) -> None:
        record = only_record(plan_for("active", ServerPhase.FAILED))
        assert record.after.state.status is Status.FAILED
        assert (
            words_of(record.after.state.detail)
            == "The dev server stopped running and could not be brought back. The cluster's words."
        )


class TestWarning:
    @pytest.mark.parametrize("minutes", [30, 15, 5])
    def test_warning_is_recorded_when_it_is_due_and_told_after_that(self, minutes: int) -> None:
        due = NOW + HOUR - minutes * MINUTE
        record = only_record(plan_for("active", ServerPhase.READY, due))
        assert (record.event.kind, record.after.memory.warned_minutes) == (EventKind.WARNED, minutes)
        telling, note = plan_for("active", ServerPhase.READY, due, reservation=record.after)
        assert isinstance(telling, Tell)
        assert [notice.file_name for notice in telling.notices] == [f"WARN_EXPIRES_IN_{minutes}MIN.txt"]
        assert telling.notices[0].text == record.event.message
        assert isinstance(note, Note)
        [look] = plan_for("active", ServerPhase.READY, due, reservation=note.after)
        assert isinstance(look, LookAgain)

    @pytest.mark.parametrize("phase", [None, ServerPhase.READY], ids=str)
    def test_warning_is_recorded_in_time_though_the_cluster_is_silent(
        self, phase: ServerPhase | None
    ) -> None:
        record = only_record(plan_for("active", phase, NOW + HOUR - MINUTE, cluster_answers=False))
        assert record.after.memory.warned_minutes == 5

    def test_server_that_does_not_answer_is_told_when_it_does(self) -> None:
        untold = change(warned(5), told_notices=())
        at = NOW + HOUR - MINUTE
        assert plan_for("active", ServerPhase.STARTING, at, reservation=untold) == (
            LookAgain(NOW + HOUR + POLICY.grace),
        )

    def test_notices_of_whoever_had_the_home_before_are_cleared_at_the_start(self) -> None:
        fresh = make_reservation(status=Status.ACTIVE)
        telling, note = plan_for("active", ServerPhase.READY, reservation=fresh)
        assert telling == Tell(fresh.id, "uid-1", ())
        assert note == Note(change(fresh, told_notices=()))

    def test_those_who_did_not_hear_are_told_later_and_the_rest_goes_on(self) -> None:
        untold, at = change(warned(30), told_notices=()), NOW + HOUR - 29 * MINUTE
        later = plan_for("active", ServerPhase.READY, at, reservation=untold, told_at=at + SECOND)
        assert later == (LookAgain(at + SECOND),)
        due = NOW + HOUR - 15 * MINUTE
        plan = plan_for("active", ServerPhase.READY, due, reservation=untold, told_at=due + SECOND)
        assert only_record(plan).after.memory.warned_minutes == 15

    def test_a_server_that_nobody_uses_ends_though_it_cannot_be_told(self) -> None:
        policy = IdlePolicy(after=10 * MINUTE, countdown=5 * MINUTE)
        idle = make_reservation(
            status=Status.ACTIVE, idle_since=NOW - 10 * MINUTE, usage_at=NOW, signals="no SSH"
        )
        plan = plan_for(
            "active", ServerPhase.READY, reservation=idle, idle_policy=policy, told_at=NOW + SECOND
        )
        assert only_record(plan).event.kind is EventKind.IDLE_WARNED

    def test_a_home_of_its_own_needs_no_clearing_and_a_disk_does(self) -> None:
        starting = make_reservation(status=Status.PREPARING)
        ready = make_server(phase=ServerPhase.READY)
        assert only_record(plan_for("preparing", server=ready)).after.memory.told_notices == ()
        on_disk = change(starting, disk_id=DiskId("disk-1"), told_notices=None)
        plan = plan_for("preparing", server=ready, reservation=on_disk)
        assert only_record(plan).after.memory.told_notices is None

    def test_kill_for_want_of_memory_is_counted_dated_and_told(self) -> None:
        server = make_server(oom_kills=2, last_oom_at=NOW)
        record = only_record(plan_for("active", server=server))
        assert record.event.kind is EventKind.OUT_OF_MEMORY
        assert (record.after.memory.oom_count, record.after.memory.last_oom_at) == (2, NOW)
        telling, _ = plan_for("active", server=server, reservation=record.after)
        assert isinstance(telling, Tell)
        assert [notice.file_name for notice in telling.notices] == ["OOM_DETECTED.txt"]


class TestSilentCluster:
    @pytest.mark.parametrize("minutes", [0, 20])
    def test_active_reservation_is_not_lost_because_nobody_answers(self, minutes: int) -> None:
        assert not records(plan_for("active", now=NOW + minutes * MINUTE, cluster_answers=False))

    def test_its_time_ends_all_the_same(self) -> None:
        record = only_record(plan_for("active", now=MOMENTS["after grace"], cluster_answers=False))
        assert record.after.state.status is Status.EXPIRED

    def test_it_can_be_cancelled(self) -> None:
        plan = plan_for("active", cluster_answers=False, operations=(make_cancel(),))
        assert only_record(plan).after.state.status is Status.CANCELLED

    def test_nothing_counts_as_clean_before_the_cluster_says_so(self) -> None:
        assert plan_for("expired", cluster_answers=False) == (LookAgain(NOW + POLICY.recheck),)
