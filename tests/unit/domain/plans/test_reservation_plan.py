"""What is done about one reservation, in every situation it can be found in.

The cross-product checks what holds always; the cases below it say what each situation leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest

from gpudev.domain.disk import DiskId, DiskState
from gpudev.domain.errors import IllegalMove
from gpudev.domain.expiry import start_is_given_up_at
from gpudev.domain.idle import IdlePolicy
from gpudev.domain.lifecycle import LIVE, TERMINAL, WAITING, Status, is_legal
from gpudev.domain.names import NodeName
from gpudev.domain.notices import list_notices
from gpudev.domain.operations import OperationStatus
from gpudev.domain.plans.actions import (
    CreateServer,
    DeleteServer,
    DiscardPortSlot,
    DriveAdmission,
    LookAgain,
    Note,
    Record,
    SettleOperations,
    Tell,
)
from gpudev.domain.plans.observation import Observation, Plan
from gpudev.domain.plans.reservation import end_with_defect, plan_reservation
from gpudev.domain.reasons import Reason
from gpudev.domain.reservation import ANSWERS, EventKind, Reservation, clean, tell
from gpudev.domain.server import Cause, Member, ServerPhase
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
    make_extension,
    make_member,
    make_reservation,
    make_server,
)

SECOND = timedelta(seconds=1)
MOMENTS = {
    "before its end": NOW + MINUTE,
    "in grace": NOW + HOUR + POLICY.grace / 2,
    "after grace": NOW + HOUR + POLICY.grace,
}
WORDS = "The cluster's words."
KNOWN: dict[str, Any] = {"told_notices": (), "progress": ""}
"""What an earlier turn has noted: there is nothing to tell, and the start has shown nothing new."""
CLEANED = "cleaned"
STATES = [*Status, CLEANED]
PHASES: list[ServerPhase | None] = [None, *ServerPhase]


def observe(status: str, phase: ServerPhase | None, now: datetime = NOW, **changes: Any) -> Observation:
    """A reservation in a status (or ended and cleaned away), its server in a phase, at a time."""
    if status == CLEANED:
        reservation = clean(make_reservation(status=Status.EXPIRED), NOW)
    else:
        reservation = make_reservation(status=Status(status), last_queue_update=now, **KNOWN)
    server = None if phase is None else make_server(phase=phase, detail=WORDS)
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
        elif record.event.kind is EventKind.WARNED:
            assert record.after == replace(record.before, warned_minutes=record.after.warned_minutes)
        elif record.event.kind is EventKind.PROGRESS:
            words, now = record.event.message, seen.now
            assert record.after == replace(record.before, detail=words, progress=words, progress_at=now)
        elif record.event.kind is EventKind.WARNING:
            assert record.after == tell(record.before, record.after.detail)
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
    LATER = LookAgain(NOW + POLICY.stale_after)

    @pytest.mark.parametrize("status", ["pending", "queued"])
    def test_nothing_is_done_here_for_a_request_that_waits(self, status: str) -> None:
        assert plan_for(status) == (self.LATER,)

    def test_server_left_over_from_an_earlier_placement_goes(self) -> None:
        plan = plan_for("queued", ServerPhase.READY)
        assert plan == (DeleteServer(make_server().reservation_id, "uid-1"), self.LATER)

    def test_server_that_stops_already_is_left_to_it(self) -> None:
        assert plan_for("queued", ServerPhase.STOPPING) == (self.LATER,)

    def test_request_that_admission_forgot_is_driven_and_looked_at_again(self) -> None:
        forgotten = make_reservation(status=Status.QUEUED, last_queue_update=NOW - POLICY.stale_after)
        note, drive, look = plan_for("queued", reservation=forgotten)
        assert isinstance(note, Note)
        assert (note.after.stale_since, note.after.driven_at) == (NOW, NOW)
        assert drive == DriveAdmission(forgotten.gpu_type)
        assert look == LookAgain(NOW + POLICY.drive_every)

    def test_nobody_is_driven_or_given_up_for_the_silence_of_the_cluster(self) -> None:
        forgotten = make_reservation(
            status=Status.QUEUED, last_queue_update=NOW - HOUR, stale_since=NOW - HOUR, driven_at=NOW - MINUTE
        )
        [look] = plan_for("queued", reservation=forgotten, cluster_answers=False)
        assert isinstance(look, LookAgain)
        assert only_record(plan_for("queued", reservation=forgotten)).after.reason is Reason.QUEUE_STALLED

    def test_request_that_waited_too_long_is_cancelled(self) -> None:
        late = make_reservation().created_at + POLICY.queue_limit
        record = only_record(plan_for("queued", now=late))
        assert (record.after.status, record.after.reason) == (Status.CANCELLED, Reason.QUEUED_TOO_LONG)


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
    def test_start_without_progress_is_given_up(self, phase: ServerPhase | None) -> None:
        given_up_at = start_is_given_up_at(make_reservation(status=Status.PREPARING), POLICY)
        record = only_record(plan_for("preparing", phase, given_up_at))
        assert (record.after.status, record.after.reason) == (Status.FAILED, Reason.START_STALLED)

    def test_start_that_takes_too_long_is_given_up_with_the_words_of_the_cluster(self) -> None:
        begun = make_reservation(status=Status.PREPARING).placed_at
        assert begun is not None
        record = only_record(plan_for("preparing", ServerPhase.STARTING, begun + POLICY.start_limit))
        assert (record.after.status, record.after.reason) == (Status.FAILED, Reason.START_TIMED_OUT)
        assert WORDS in record.after.detail

    def test_progress_gives_the_start_more_time(self) -> None:
        late = start_is_given_up_at(make_reservation(status=Status.PREPARING), POLICY) + MINUTE
        server = make_server(phase=ServerPhase.STARTING, progress="Pulling the image.")
        record, look = plan_for("preparing", now=late, server=server)
        assert isinstance(record, Record)
        assert (record.after.progress, record.after.progress_at) == ("Pulling the image.", late)
        assert look == LookAgain(late + POLICY.recheck)

    def test_that_a_server_is_there_is_noted_as_progress(self) -> None:
        placed = make_reservation(status=Status.PREPARING, progress=None)
        note, look = plan_for("preparing", ServerPhase.STARTING, reservation=placed)
        assert isinstance(note, Note)
        assert (note.after.progress, note.after.progress_at) == ("", NOW)
        assert note.after.detail == placed.detail
        assert look == self.SOON

    def test_nothing_is_given_up_while_the_cluster_is_silent(self) -> None:
        late = NOW + 5 * HOUR
        assert plan_for("preparing", now=late, cluster_answers=False) == (LookAgain(late + POLICY.recheck),)

    def test_server_that_answers_at_the_last_moment_wins_over_the_time_limit(self) -> None:
        record = only_record(plan_for("preparing", ServerPhase.READY, NOW + 5 * HOUR))
        assert record.after.status is Status.ACTIVE

    def test_last_look_is_when_the_start_is_given_up(self) -> None:
        given_up_at = start_is_given_up_at(make_reservation(status=Status.PREPARING), POLICY)
        plan = plan_for("preparing", ServerPhase.STARTING, given_up_at - POLICY.recheck / 2)
        assert plan == (LookAgain(given_up_at),)


def warned(minutes: int, **changes: Any) -> Reservation:
    """Active, warned for the last time so many minutes before its end, and everybody knows."""
    reservation = make_reservation(status=Status.ACTIVE, warned_minutes=minutes, **changes)
    return replace(reservation, told_notices=tuple(notice.key for notice in list_notices(reservation)))


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


class TestWarning:
    @pytest.mark.parametrize("minutes", [30, 15, 5])
    def test_warning_is_recorded_when_it_is_due_and_told_after_that(self, minutes: int) -> None:
        due = NOW + HOUR - minutes * MINUTE
        record = only_record(plan_for("active", ServerPhase.READY, due))
        assert (record.event.kind, record.after.warned_minutes) == (EventKind.WARNED, minutes)
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
        assert record.after.warned_minutes == 5

    def test_server_that_does_not_answer_is_told_when_it_does(self) -> None:
        untold = replace(warned(5), told_notices=())
        at = NOW + HOUR - MINUTE
        assert plan_for("active", ServerPhase.STARTING, at, reservation=untold) == (
            LookAgain(NOW + HOUR + POLICY.grace),
        )

    def test_notices_of_whoever_had_the_home_before_are_cleared_at_the_start(self) -> None:
        fresh = make_reservation(status=Status.ACTIVE)
        telling, note = plan_for("active", ServerPhase.READY, reservation=fresh)
        assert telling == Tell(fresh.id, "uid-1", ())
        assert note == Note(replace(fresh, told_notices=()))

    def test_those_who_did_not_hear_are_told_later_and_the_rest_goes_on(self) -> None:
        untold, at = replace(warned(30), told_notices=()), NOW + HOUR - 29 * MINUTE
        later = plan_for("active", ServerPhase.READY, at, reservation=untold, told_at=at + SECOND)
        assert later == (LookAgain(at + SECOND),)
        due = NOW + HOUR - 15 * MINUTE
        plan = plan_for("active", ServerPhase.READY, due, reservation=untold, told_at=due + SECOND)
        assert only_record(plan).after.warned_minutes == 15

    def test_a_server_that_nobody_uses_ends_though_it_cannot_be_told(self) -> None:
        policy = IdlePolicy(after=10 * MINUTE, countdown=5 * MINUTE)
        idle = make_reservation(
            status=Status.ACTIVE, idle_since=NOW - 10 * MINUTE, usage_at=NOW, idle_words="no SSH"
        )
        plan = plan_for(
            "active", ServerPhase.READY, reservation=idle, idle_policy=policy, told_at=NOW + SECOND
        )
        assert only_record(plan).event.kind is EventKind.IDLE_WARNED

    def test_a_home_of_its_own_needs_no_clearing_and_a_disk_does(self) -> None:
        starting = make_reservation(status=Status.PREPARING)
        ready = make_server(phase=ServerPhase.READY)
        assert only_record(plan_for("preparing", server=ready)).after.told_notices == ()
        on_disk = replace(starting, disk_id=DiskId("disk-1"), told_notices=None)
        plan = plan_for("preparing", server=ready, reservation=on_disk)
        assert only_record(plan).after.told_notices is None

    def test_kill_for_want_of_memory_is_counted_dated_and_told(self) -> None:
        server = make_server(oom_kills=2, last_oom_at=NOW)
        record = only_record(plan_for("active", server=server))
        assert record.event.kind is EventKind.OUT_OF_MEMORY
        assert (record.after.oom_count, record.after.last_oom_at) == (2, NOW)
        telling, _ = plan_for("active", server=server, reservation=record.after)
        assert isinstance(telling, Tell)
        assert [notice.file_name for notice in telling.notices] == ["OOM_DETECTED.txt"]


class TestSilentCluster:
    @pytest.mark.parametrize("minutes", [0, 20])
    def test_active_reservation_is_not_lost_because_nobody_answers(self, minutes: int) -> None:
        assert not records(plan_for("active", now=NOW + minutes * MINUTE, cluster_answers=False))

    def test_its_time_ends_all_the_same(self) -> None:
        record = only_record(plan_for("active", now=MOMENTS["after grace"], cluster_answers=False))
        assert record.after.status is Status.EXPIRED

    def test_it_can_be_cancelled(self) -> None:
        plan = plan_for("active", cluster_answers=False, operations=(make_cancel(),))
        assert only_record(plan).after.status is Status.CANCELLED

    def test_nothing_counts_as_clean_before_the_cluster_says_so(self) -> None:
        assert plan_for("expired", cluster_answers=False) == (LookAgain(NOW + POLICY.recheck),)


class TestExtension:
    LATE = NOW + HOUR + POLICY.grace

    @pytest.mark.parametrize("moment", MOMENTS)
    def test_extension_wins_over_the_end_also_in_grace_and_at_its_very_end(self, moment: str) -> None:
        """Whoever writes `expired` has seen every operation that was accepted before."""
        asked = make_extension(HOUR)
        record = only_record(plan_for("active", ServerPhase.READY, MOMENTS[moment], operations=(asked,)))
        assert (record.event.kind, record.after.expires_at) == (EventKind.EXTENDED, NOW + 2 * HOUR)
        assert [outcome.status for outcome in record.outcomes] == [OperationStatus.DONE]

    def test_extension_clears_the_warnings_and_their_files(self) -> None:
        before = warned(5, extension_error="Too long.")
        at = NOW + HOUR - MINUTE
        record = only_record(
            plan_for("active", ServerPhase.READY, at, reservation=before, operations=(make_extension(HOUR),))
        )
        assert (record.after.warned_minutes, record.after.extension_error) == (None, "")
        telling, _ = plan_for("active", ServerPhase.READY, at, reservation=record.after)
        assert telling == Tell(before.id, "uid-1", ())

    def test_extension_that_is_to_wait_holds_the_end_off(self) -> None:
        """Asked for in the last moment by a client that wants to see the old end first."""
        asked = make_extension(HOUR, not_before=self.LATE + 2 * SECOND)
        assert plan_for("active", ServerPhase.READY, self.LATE, operations=(asked,)) == (
            LookAgain(self.LATE + 2 * SECOND),
        )
        then = self.LATE + 2 * SECOND
        record = only_record(plan_for("active", ServerPhase.READY, then, operations=(asked,)))
        assert record.after.expires_at == NOW + 2 * HOUR

    def test_extensions_are_carried_out_one_by_one(self) -> None:
        asked = (make_extension(HOUR, number=1), make_extension(HOUR, number=2))
        record = only_record(plan_for("active", ServerPhase.READY, operations=asked))
        assert [outcome.operation_id for outcome in record.outcomes] == ["extension-1"]

    def test_too_long_extension_fails_with_what_is_left_and_changes_no_end(self) -> None:
        asked = make_extension(48 * HOUR)
        record = only_record(plan_for("active", ServerPhase.READY, operations=(asked,)))
        [outcome] = record.outcomes
        assert (outcome.status, record.event.kind) == (OperationStatus.FAILED, EventKind.EXTENSION_REFUSED)
        assert "47 hours" in outcome.error
        assert record.after == replace(record.before, extension_error=outcome.error)

    @pytest.mark.parametrize("not_before", [None, NOW + HOUR], ids=["at once", "later"])
    def test_extension_of_what_has_ended_fails_and_is_settled(self, not_before: datetime | None) -> None:
        asked = make_extension(HOUR, not_before=not_before)
        settled = plan_for(CLEANED, operations=(asked,))[0]
        assert isinstance(settled, SettleOperations)
        assert [outcome.status for outcome in settled.outcomes] == [OperationStatus.FAILED]

    def test_cancel_wins_over_an_extension(self) -> None:
        asked = (make_extension(HOUR), make_cancel())
        record = only_record(plan_for("active", ServerPhase.READY, operations=asked))
        assert record.after.status is Status.CANCELLED
        assert [outcome.status for outcome in record.outcomes] == ["failed", "done"]


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
            record.event.kind is EventKind.ACTIVE for record in records(plan_reservation(seen))
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
        assert any(record.after.is_ended for record in records(plan_reservation(seen))) == is_hurt

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


class TestWhatTheClusterSays:
    """Causes, warnings and progress of a server, and the address that goes with a placement."""

    @pytest.mark.parametrize(
        "cause, reason",
        [
            (Cause.IMAGE, Reason.IMAGE_UNAVAILABLE),
            (Cause.OUT_OF_MEMORY, Reason.OUT_OF_MEMORY),
            (None, Reason.START_FAILED),
        ],
    )
    def test_a_start_fails_for_the_reason_that_the_cluster_gives(
        self, cause: Cause | None, reason: Reason
    ) -> None:
        server = make_server(phase=ServerPhase.FAILED, cause=cause, detail="Words.")
        (record, deletion) = plan_reservation(observe("preparing", None, server=server))
        assert isinstance(record, Record)
        assert (record.after.status, record.after.reason) == (Status.FAILED, reason)
        assert record.after.detail.endswith("Words.")
        assert isinstance(deletion, DeleteServer)

    @pytest.mark.parametrize("cause", [Cause.NODE_LOST, Cause.EVICTED])
    def test_a_start_on_an_unfit_node_goes_back_to_the_queue(self, cause: Cause) -> None:
        server = make_server(phase=ServerPhase.FAILED, cause=cause)
        (record,) = records(plan_reservation(observe("preparing", None, server=server)))
        assert (record.after.status, record.after.reason) == (Status.QUEUED, Reason.PLACEMENT_LOST)

    @pytest.mark.parametrize(
        "cause, reason",
        [
            (Cause.NODE_LOST, Reason.NODE_LOST),
            (Cause.EVICTED, Reason.EVICTED),
            (None, Reason.SERVER_FAILED),
        ],
    )
    def test_a_running_server_ends_for_the_reason_that_the_cluster_gives(
        self, cause: Cause | None, reason: Reason
    ) -> None:
        server = make_server(phase=ServerPhase.FAILED, cause=cause)
        (record,) = records(plan_reservation(observe("active", None, server=server)))
        assert (record.after.status, record.after.reason) == (Status.FAILED, reason)

    def test_a_server_that_went_with_its_node_is_not_said_to_have_been_deleted(self) -> None:
        (record,) = records(plan_reservation(observe("active", None, has_node=False)))
        assert record.after.reason is Reason.NODE_LOST

    def test_a_server_that_crashes_before_it_answered_has_failed(self) -> None:
        (record,) = records(plan_reservation(observe("preparing", ServerPhase.CRASHING)))
        assert (record.after.status, record.after.reason) == (Status.FAILED, Reason.START_FAILED)

    def test_a_server_with_work_in_it_that_crashes_is_warned_about_and_kept(self) -> None:
        (record,) = records(plan_reservation(observe("active", ServerPhase.CRASHING)))
        assert (record.after.status, record.event.kind) == (Status.ACTIVE, EventKind.WARNING)

    def test_a_warning_is_told_once_and_so_is_its_end(self) -> None:
        warned = make_server(warning="The node is silent.")
        seen = observe("active", None, server=warned)
        (record,) = records(plan_reservation(seen))
        assert record.event.kind is EventKind.WARNING
        assert record.event.message == "The node is silent."
        again = replace(seen, reservation=record.after)
        assert records(plan_reservation(again)) == []
        (over,) = records(plan_reservation(replace(again, server=make_server())))
        assert over.after.detail == ANSWERS
        assert records(plan_reservation(replace(again, reservation=over.after, server=make_server()))) == []

    def test_progress_is_told_once(self) -> None:
        seen = observe(
            "preparing", None, server=make_server(phase=ServerPhase.STARTING, progress="Fetching.")
        )
        (record,) = records(plan_reservation(seen))
        assert (record.event.kind, record.after.detail) == (EventKind.PROGRESS, "Fetching.")
        assert records(plan_reservation(replace(seen, reservation=record.after))) == []

    def test_the_address_of_a_placement_goes_before_the_placement_is_given_up(self) -> None:
        placed = make_reservation(status=Status.PREPARING, port_slot="slot-1")
        seen = replace(observe("preparing", ServerPhase.UNPLACEABLE), reservation=placed)
        deletion, discarding, record = plan_reservation(seen)
        assert isinstance(deletion, DeleteServer)
        assert discarding == DiscardPortSlot("slot-1")
        assert isinstance(record, Record)
        assert record.after.port_slot == ""

    def test_the_address_goes_before_a_reservation_is_clean(self) -> None:
        ended = make_reservation(status=Status.CANCELLED, port_slot="slot-1")
        discarding, record = plan_reservation(replace(observe("cancelled", None), reservation=ended))
        assert discarding == DiscardPortSlot("slot-1")
        assert isinstance(record, Record)
        assert record.event.kind is EventKind.CLEANED


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

    def test_a_disk_may_take_as_long_as_a_start_may(self) -> None:
        """The storage says nothing meanwhile, so that silence is no reason to give up."""
        seen = observe(Status.PREPARING, None, disk=make_disk(DiskState.ATTACHING))
        begun = seen.reservation.placed_at or seen.reservation.created_at
        late = replace(seen, now=begun + POLICY.progress_limit)
        assert [type(action) for action in plan_reservation(late)] == [LookAgain]
        ready = replace(late, disk=make_disk(DiskState.IN_USE))
        assert any(isinstance(action, CreateServer) for action in plan_reservation(ready))
        too_late = replace(seen, now=begun + POLICY.start_limit)
        (record,) = records(plan_reservation(too_late))
        assert (record.after.status, record.after.reason) == (Status.FAILED, Reason.START_TIMED_OUT)

    def test_a_server_that_came_late_with_its_disk_has_time_to_start(self) -> None:
        fresh = make_reservation(status=Status.PREPARING, told_notices=())
        begun = fresh.placed_at or fresh.created_at
        late = begun + 2 * POLICY.progress_limit
        seen = observe(Status.PREPARING, ServerPhase.STARTING, late, reservation=fresh)
        plan = plan_reservation(replace(seen, disk=make_disk(DiskState.IN_USE)))
        [note] = [action for action in plan if isinstance(action, Note)]
        assert note.after.progress_at == late
        assert records(plan) == []
