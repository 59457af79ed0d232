"""What is done about one reservation, in every situation it can be found in.

The cross-product checks what holds always; the cases below it say what each situation leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import product
from typing import Any

import pytest

from gpudev.domain.disk import DiskState
from gpudev.domain.errors import IllegalMove
from gpudev.domain.expiry import start_is_given_up_at
from gpudev.domain.lifecycle import LIVE, TERMINAL, WAITING, Status, is_legal
from gpudev.domain.names import NodeName
from gpudev.domain.plans.actions import CreateServer, DeleteServer, LookAgain, Record, SettleOperations
from gpudev.domain.plans.reservation import Observation, Plan, end_with_defect, plan_reservation
from gpudev.domain.reservation import EventKind, OperationStatus, Reason, clean
from gpudev.domain.server import Member, ServerPhase
from tests.support.disk_values import make_disk
from tests.support.domain_values import (
    ADDRESS,
    HOST_KEYS,
    HOUR,
    MINUTE,
    NOW,
    POLICY,
    QUAD,
    make_cancel,
    make_member,
    make_reservation,
    make_server,
)

MOMENTS = {
    "before its end": NOW + MINUTE,
    "in grace": NOW + HOUR + POLICY.grace / 2,
    "after grace": NOW + HOUR + POLICY.grace,
}
CLEANED = "cleaned"
STATES = [*Status, CLEANED]
PHASES: list[ServerPhase | None] = [None, *ServerPhase]


def observe(status: str, phase: ServerPhase | None, now: datetime = NOW, **changes: Any) -> Observation:
    """A reservation in a status (or ended and cleaned away), its server in a phase, at a time."""
    if status == CLEANED:
        reservation = clean(make_reservation(status=Status.EXPIRED), NOW)
    else:
        reservation = make_reservation(status=Status(status))
    server = None if phase is None else make_server(phase=phase, detail="The cluster's words.")
    seen = Observation(reservation, (), server, QUAD, POLICY, now)
    return replace(seen, **changes)


def situations() -> Iterator[Any]:
    for status, phase, cancels, (moment, now) in product(STATES, PHASES, (0, 2), MOMENTS.items()):
        operations = tuple(make_cancel(number) for number in range(cancels))
        name = f"{status}, {phase or 'no'} server, {cancels} cancels, {moment}"
        yield pytest.param(observe(status, phase, now, operations=operations), id=name)


SITUATIONS = list(situations())
every_situation = pytest.mark.parametrize("seen", SITUATIONS)


def every_situation_in_which(holds: Callable[[Observation], bool]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("seen", [param for param in SITUATIONS if holds(param.values[0])])


def may_run(seen: Observation) -> bool:
    """Somebody may be at work on the server of a reservation that has its place."""
    has_run = seen.server is not None and seen.server.phase is not ServerPhase.UNPLACEABLE
    return has_run and seen.reservation.is_placed


def is_unfinished(seen: Observation) -> bool:
    """Something is left to do here; those that wait are driven by admission."""
    is_over = seen.reservation.is_cleaned and seen.server is None
    return not (is_over or seen.reservation.is_waiting)


def records(plan: Plan) -> list[Record]:
    return [action for action in plan if isinstance(action, Record)]


def deletions(plan: Plan) -> list[DeleteServer]:
    return [action for action in plan if isinstance(action, DeleteServer)]


@every_situation
def test_a_plan_records_at_most_one_change_a_legal_move_or_a_clean_up(seen: Observation) -> None:
    written = records(plan_reservation(seen))
    assert len(written) <= 1
    for record in written:
        assert record.before == seen.reservation
        assert record.event.at == seen.now
        if record.event.kind is EventKind.CLEANED:
            assert record.after == clean(record.before, seen.now)
        else:
            assert is_legal(record.before.status, record.after.status)


@every_situation_in_which(lambda seen: seen.reservation.is_ended)
def test_a_terminal_state_is_never_overwritten(seen: Observation) -> None:
    for record in records(plan_reservation(seen)):
        assert record.after.status is seen.reservation.status
        assert record.after.reason is seen.reservation.reason
        assert record.after.ended_at == seen.reservation.ended_at


@every_situation_in_which(lambda seen: seen.reservation.is_ended)
def test_an_ended_reservation_creates_nothing(seen: Observation) -> None:
    assert not [action for action in plan_reservation(seen) if isinstance(action, CreateServer)]


@every_situation
def test_a_server_is_created_only_for_a_placed_request_that_has_none(seen: Observation) -> None:
    if any(isinstance(action, CreateServer) for action in plan_reservation(seen)):
        assert seen.reservation.status is Status.PREPARING
        assert seen.server is None or len(seen.server.members) < seen.reservation.node_count
        assert not seen.operations


@every_situation
def test_a_deletion_names_the_very_server_that_was_seen_and_never_one_that_stops(seen: Observation) -> None:
    for deletion in deletions(plan_reservation(seen)):
        assert seen.server is not None
        assert (deletion.reservation_id, deletion.uid) == (seen.reservation.id, seen.server.uid)
        assert seen.server.phase is not ServerPhase.STOPPING


@every_situation_in_which(may_run)
def test_a_server_that_may_run_goes_only_after_its_end_is_written(seen: Observation) -> None:
    plan = plan_reservation(seen)
    if deletions(plan):
        assert isinstance(plan[0], Record)
        assert plan[0].after.is_ended


@every_situation
def test_every_operation_that_waits_is_settled_and_exactly_once(seen: Observation) -> None:
    settled = [
        outcome.operation_id
        for action in plan_reservation(seen)
        if isinstance(action, Record | SettleOperations)
        for outcome in action.outcomes
    ]
    assert settled == [operation.operation_id for operation in seen.operations]


@every_situation_in_which(is_unfinished)
def test_what_is_not_finished_is_looked_at_again_though_every_hint_be_lost(seen: Observation) -> None:
    """A record brings the next turn by itself."""
    assert any(isinstance(action, Record | LookAgain) for action in plan_reservation(seen))


@every_situation
def test_next_look_is_in_the_future_and_comes_last(seen: Observation) -> None:
    plan = plan_reservation(seen)
    looks = [action for action in plan if isinstance(action, LookAgain)]
    assert all(look.at > seen.now for look in looks)
    assert looks == list(plan[len(plan) - len(looks) :])
    assert len(looks) <= 1


@every_situation
def test_equal_observations_give_equal_plans(seen: Observation) -> None:
    assert plan_reservation(seen) == plan_reservation(replace(seen))


def plan_for(status: str, phase: ServerPhase | None = None, now: datetime = NOW, **changes: Any) -> Plan:
    return plan_reservation(observe(status, phase, now, **changes))


def only_record(plan: Plan) -> Record:
    [record] = records(plan)
    return record


class TestWaiting:
    @pytest.mark.parametrize("status", ["pending", "queued"])
    def test_nothing_is_done_here_for_a_request_that_waits(self, status: str) -> None:
        assert plan_for(status) == ()

    def test_server_left_over_from_an_earlier_placement_goes(self) -> None:
        assert plan_for("queued", ServerPhase.READY) == (DeleteServer(make_server().reservation_id, "uid-1"),)

    def test_server_that_stops_already_is_left_to_it(self) -> None:
        assert plan_for("queued", ServerPhase.STOPPING) == ()


class TestPreparing:
    SOON = LookAgain(NOW + POLICY.recheck)

    def test_missing_server_is_created_with_its_share_of_the_node(self) -> None:
        create, look = plan_for("preparing")
        assert isinstance(create, CreateServer)
        reservation = make_reservation(status=Status.PREPARING)
        assert (create.spec.reservation_id, create.spec.nodes) == (reservation.id, reservation.nodes)
        assert create.spec.share == QUAD.share_of(1)
        assert (create.spec.duration, create.spec.username) == (HOUR, "ada")
        assert look == self.SOON

    @pytest.mark.parametrize("phase", [ServerPhase.STARTING, ServerPhase.STOPPING], ids=str)
    def test_server_under_way_is_waited_for(self, phase: ServerPhase) -> None:
        assert plan_for("preparing", phase) == (self.SOON,)

    def test_server_that_answers_makes_the_reservation_active(self) -> None:
        record = only_record(plan_for("preparing", ServerPhase.READY))
        after = record.after
        assert (after.status, after.address, after.host_keys) == (Status.ACTIVE, ADDRESS, HOST_KEYS)
        assert (after.launched_at, after.expires_at) == (NOW, NOW + HOUR)

    def test_ready_server_without_an_address_is_waited_for(self) -> None:
        assert plan_for("preparing", server=make_server(address=None)) == (self.SOON,)

    def test_server_on_another_node_is_left_over_and_goes(self) -> None:
        plan = plan_for("preparing", server=make_server(node=NodeName("z")))
        assert plan == (DeleteServer(make_server().reservation_id, "uid-1"), self.SOON)

    def test_server_that_found_no_room_goes_and_the_request_is_back_in_the_queue(self) -> None:
        plan = plan_for("preparing", ServerPhase.UNPLACEABLE)
        assert isinstance(plan[0], DeleteServer)
        record = only_record(plan)
        assert (record.after.status, record.after.reason) == (Status.QUEUED, Reason.PLACEMENT_LOST)
        assert record.event.kind is EventKind.REQUEUED
        assert "The cluster's words." in record.after.detail

    def test_server_that_cannot_run_fails_the_reservation_with_the_words_of_the_cluster(self) -> None:
        record, deletion = plan_for("preparing", ServerPhase.FAILED)
        assert isinstance(record, Record)
        assert (record.after.status, record.after.reason) == (Status.FAILED, Reason.START_FAILED)
        assert "The cluster's words." in record.after.detail
        assert isinstance(deletion, DeleteServer)

    @pytest.mark.parametrize("phase", [None, ServerPhase.STARTING, ServerPhase.UNPLACEABLE], ids=str)
    def test_start_that_takes_too_long_is_given_up(self, phase: ServerPhase | None) -> None:
        given_up_at = start_is_given_up_at(make_reservation(status=Status.PREPARING), POLICY)
        record = only_record(plan_for("preparing", phase, given_up_at))
        assert (record.after.status, record.after.reason) == (Status.FAILED, Reason.START_TIMED_OUT)

    def test_server_that_answers_at_the_last_moment_wins_over_the_time_limit(self) -> None:
        record = only_record(plan_for("preparing", ServerPhase.READY, NOW + 5 * HOUR))
        assert record.after.status is Status.ACTIVE

    def test_last_look_is_when_the_start_is_given_up(self) -> None:
        given_up_at = start_is_given_up_at(make_reservation(status=Status.PREPARING), POLICY)
        plan = plan_for("preparing", ServerPhase.STARTING, given_up_at - POLICY.recheck / 2)
        assert plan == (LookAgain(given_up_at),)


class TestActive:
    @pytest.mark.parametrize("moment", ["before its end", "in grace"])
    def test_running_server_is_left_alone_until_grace_is_over(self, moment: str) -> None:
        plan = plan_for("active", ServerPhase.READY, MOMENTS[moment])
        assert plan == (LookAgain(NOW + HOUR + POLICY.grace),)

    def test_time_that_is_up_ends_it_and_then_takes_the_server(self) -> None:
        record, deletion = plan_for("active", ServerPhase.READY, MOMENTS["after grace"])
        assert isinstance(record, Record)
        assert (record.after.status, record.after.reason) == (Status.EXPIRED, Reason.TIME_IS_UP)
        assert record.after.ended_at == MOMENTS["after grace"]
        assert isinstance(deletion, DeleteServer)

    def test_server_that_is_gone_fails_it(self) -> None:
        record = only_record(plan_for("active", None))
        assert (record.after.status, record.after.reason) == (Status.FAILED, Reason.POD_DELETED)

    def test_server_gone_when_the_time_is_up_is_an_expiry_and_no_failure(self) -> None:
        assert only_record(plan_for("active", None, MOMENTS["after grace"])).after.status is Status.EXPIRED

    def test_server_that_broke_fails_it_and_the_words_do_not_say_that_it_never_started(self) -> None:
        record = only_record(plan_for("active", ServerPhase.FAILED))
        assert record.after.status is Status.FAILED
        assert (
            record.after.detail
            == "The dev server stopped running and could not be brought back. The cluster's words."
        )


GANG_NODES = (NodeName("a"), NodeName("b"))


def observe_gang(status: Status, phases: tuple[ServerPhase | None, ...]) -> Observation:
    """A gang of two; a phase of None stands for a member that is not there."""
    members = tuple(
        make_member(rank, phase, node=GANG_NODES[rank], detail="Its words.")
        for rank, phase in enumerate(phases)
        if phase is not None
    )
    reservation = make_reservation(status=status, nodes=GANG_NODES, gpu_count=8)
    return observe(
        status, None, reservation=reservation, server=make_server(members=members) if members else None
    )


GANGS = [
    pytest.param(observe_gang(status, phases), id=f"{status}: {', '.join(str(phase) for phase in phases)}")
    for status, phases in product(Status, product(PHASES, PHASES))
    if status not in WAITING
]


class TestGangs:
    @pytest.mark.parametrize("seen", GANGS)
    def test_it_is_active_only_when_every_member_answers(self, seen: Observation) -> None:
        members = seen.server.members if seen.server else ()
        answers = [member.phase is ServerPhase.READY for member in members]
        became_active = any(
            record.after.status is Status.ACTIVE for record in records(plan_reservation(seen))
        )
        assert became_active == (
            seen.reservation.status is Status.PREPARING and len(answers) == 2 and all(answers)
        )

    @pytest.mark.parametrize("phases", list(product(PHASES, PHASES)))
    def test_active_gang_ends_exactly_when_a_member_is_broken_or_gone(
        self, phases: tuple[ServerPhase | None, ...]
    ) -> None:
        seen = observe_gang(Status.ACTIVE, phases)
        is_hurt = None in phases or ServerPhase.FAILED in phases
        assert bool(records(plan_reservation(seen))) == is_hurt

    @pytest.mark.parametrize("seen", GANGS)
    def test_end_of_a_gang_takes_whatever_is_left_of_it_unless_all_of_it_stops(
        self, seen: Observation
    ) -> None:
        plan = plan_reservation(seen)
        if seen.reservation.is_ended or any(record.after.is_ended for record in records(plan)):
            stops = seen.server is None or seen.server.phase is ServerPhase.STOPPING
            assert len(deletions(plan)) == (0 if stops else 1)

    @pytest.mark.parametrize("seen", GANGS)
    def test_member_that_is_missing_while_it_starts_is_made(self, seen: Observation) -> None:
        made = any(isinstance(action, CreateServer) for action in plan_reservation(seen))
        phases = {member.phase for member in seen.server.members} if seen.server else set()
        can_start = phases <= {ServerPhase.STARTING, ServerPhase.READY}
        is_partial = seen.server is None or len(seen.server.members) < 2
        assert made == (seen.reservation.status is Status.PREPARING and is_partial and can_start)

    def test_lost_member_is_named(self) -> None:
        record = only_record(plan_reservation(observe_gang(Status.ACTIVE, (ServerPhase.READY, None))))
        assert record.after.reason is Reason.POD_DELETED
        assert record.after.detail.endswith("Gone: gpu-dev-00000001-1 on b.")

    def test_broken_member_is_named_with_its_words(self) -> None:
        seen = observe_gang(Status.ACTIVE, (ServerPhase.READY, ServerPhase.FAILED))
        record = only_record(plan_reservation(seen))
        assert record.after.reason is Reason.SERVER_FAILED
        assert record.after.detail.endswith("gpu-dev-00000001-1 on b: Its words.")

    def test_members_on_each_others_nodes_are_left_over_and_go(self) -> None:
        members = (make_member(0, node="b"), make_member(1, node="a"))
        seen = replace(observe_gang(Status.PREPARING, (None, None)), server=make_server(members=members))
        assert isinstance(plan_reservation(seen)[0], DeleteServer)

    def test_each_member_gets_the_share_of_one_node(self) -> None:
        create, _ = plan_reservation(observe_gang(Status.PREPARING, (None, None)))
        assert isinstance(create, CreateServer)
        assert (create.spec.nodes, create.spec.gpu_count, create.spec.gpus_per_node) == (GANG_NODES, 8, 4)
        assert create.spec.share == QUAD.share_of(4)

    def test_active_gang_keeps_the_address_of_every_member(self) -> None:
        seen = observe_gang(Status.PREPARING, (ServerPhase.READY, ServerPhase.READY))
        record = only_record(plan_reservation(seen))
        assert record.after.members == tuple(Member(node, ADDRESS, HOST_KEYS) for node in GANG_NODES)


class TestCancel:
    @pytest.mark.parametrize("status", sorted(LIVE), ids=str)
    @pytest.mark.parametrize("moment", MOMENTS)
    def test_cancel_ends_any_live_reservation_before_the_clock_does(
        self, status: Status, moment: str
    ) -> None:
        plan = plan_for(status, ServerPhase.READY, MOMENTS[moment], operations=(make_cancel(),))
        record = only_record(plan)
        assert (record.after.status, record.after.reason) == (Status.CANCELLED, Reason.CANCELLED_BY_USER)
        assert [outcome.status for outcome in record.outcomes] == [OperationStatus.DONE]
        assert len(deletions(plan)) == 1

    @pytest.mark.parametrize("status", sorted(LIVE), ids=str)
    def test_cancel_by_an_admin_says_so(self, status: Status) -> None:
        by_admin, by_owner = replace(make_cancel(), is_by_admin=True), make_cancel()
        after = only_record(plan_for(status, operations=(by_admin, by_owner))).after
        assert (after.status, after.reason) == (Status.CANCELLED, Reason.CANCELLED_BY_ADMIN)
        assert after.detail == "It was cancelled by an admin."
        first = only_record(plan_for(status, operations=(by_owner, by_admin))).after
        assert first.reason is Reason.CANCELLED_BY_USER

    @pytest.mark.parametrize("status", sorted(TERMINAL), ids=str)
    def test_cancel_of_an_ended_reservation_is_done_already_and_does_not_delay_its_clean_up(
        self, status: Status
    ) -> None:
        settled, deletion, look = plan_for(status, ServerPhase.READY, operations=(make_cancel(),))
        assert isinstance(settled, SettleOperations)
        assert isinstance(deletion, DeleteServer)
        assert look == LookAgain(NOW + POLICY.recheck)


class TestEnded:
    @pytest.mark.parametrize("status", sorted(TERMINAL), ids=str)
    def test_end_is_clean_only_when_the_server_is_gone(self, status: Status) -> None:
        assert not records(plan_for(status, ServerPhase.STOPPING))
        record = only_record(plan_for(status, None))
        assert record.after.cleaned_at == NOW

    def test_nothing_is_left_to_do_for_a_cleaned_reservation(self) -> None:
        assert plan_for(CLEANED) == ()

    def test_server_that_comes_late_to_a_cleaned_reservation_goes(self) -> None:
        plan = plan_for(CLEANED, ServerPhase.STARTING)
        assert len(deletions(plan)) == 1
        assert not records(plan)


class TestDefect:
    @pytest.mark.parametrize("status", sorted(LIVE), ids=str)
    def test_repeated_error_of_ours_fails_a_live_reservation(self, status: Status) -> None:
        record = end_with_defect(make_reservation(status=status), NOW)
        assert (record.after.status, record.after.reason) == (Status.FAILED, Reason.INTERNAL_ERROR)

    @pytest.mark.parametrize("status", sorted(TERMINAL), ids=str)
    def test_repeated_error_of_ours_never_overwrites_an_end(self, status: Status) -> None:
        with pytest.raises(IllegalMove):
            end_with_defect(make_reservation(status=status), NOW)


class TestDisk:
    """No server before its disk is ready, and never one with an empty home instead."""

    @pytest.mark.parametrize("state", [DiskState.AVAILABLE, DiskState.ATTACHING, DiskState.RELEASING])
    def test_a_server_waits_for_its_disk(self, state: DiskState) -> None:
        plan = plan_reservation(observe(Status.PREPARING, None, disk=make_disk(state)))
        assert [type(action) for action in plan] == [LookAgain]

    def test_a_disk_that_is_ready_becomes_the_home(self) -> None:
        plan = plan_reservation(observe(Status.PREPARING, None, disk=make_disk(DiskState.IN_USE)))
        [spec] = [action.spec for action in plan if isinstance(action, CreateServer)]
        assert spec.home is not None
        assert (spec.home.disk_name, spec.home.volume_id) == ("default", "vol-0")

    def test_a_disk_of_somebody_else_is_not_mounted(self) -> None:
        other = make_disk(DiskState.IN_USE, reservation_id=make_reservation(2).id)
        plan = plan_reservation(observe(Status.PREPARING, None, disk=other))
        assert [type(action) for action in plan] == [LookAgain]

    def test_a_disk_that_fails_fails_its_reservation(self) -> None:
        broken = make_disk(DiskState.ATTACHING, problem="The volume is gone.")
        [record] = plan_reservation(observe(Status.PREPARING, None, disk=broken))
        assert isinstance(record, Record)
        assert (record.after.status, record.after.reason) == (Status.FAILED, Reason.DISK_FAILED)
        assert "The volume is gone." in record.after.detail
