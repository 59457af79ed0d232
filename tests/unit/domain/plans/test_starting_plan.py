"""What is done about a reservation that waits or starts."""

from __future__ import annotations

import pytest

from gpudev.domain.expiry import start_is_given_up_at
from gpudev.domain.names import NodeName
from gpudev.domain.plans.turn import (
    CreateServer,
    DeleteServer,
    DriveAdmission,
    LookAgain,
    Note,
    Record,
)
from gpudev.domain.server import ServerPhase
from gpudev.texts.vocabulary import EventKind, Reason, Status
from tests.support.domain_values import (
    ADDRESS,
    HOST_KEYS,
    HOUR,
    MINUTE,
    NOW,
    POLICY,
    QUAD,
    make_reservation,
    make_server,
)
from tests.support.reservation_plans import (
    WORDS,
    only_record,
    plan_for,
)
from tests.support.words import words_of


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
        assert (note.after.memory.stale_since, note.after.memory.driven_at) == (NOW, NOW)
        assert drive == DriveAdmission(forgotten.spec.gpu_type)
        assert look == LookAgain(NOW + POLICY.drive_every)

    def test_nobody_is_driven_or_given_up_for_the_silence_of_the_cluster(self) -> None:
        forgotten = make_reservation(
            status=Status.QUEUED, last_queue_update=NOW - HOUR, stale_since=NOW - HOUR, driven_at=NOW - MINUTE
        )
        [look] = plan_for("queued", reservation=forgotten, cluster_answers=False)
        assert isinstance(look, LookAgain)
        assert (
            only_record(plan_for("queued", reservation=forgotten)).after.state.reason is Reason.QUEUE_STALLED
        )

    def test_request_that_waited_too_long_is_cancelled(self) -> None:
        late = make_reservation().spec.created_at + POLICY.queue_limit
        record = only_record(plan_for("queued", now=late))
        assert (record.after.state.status, record.after.state.reason) == (
            Status.CANCELLED,
            Reason.QUEUED_TOO_LONG,
        )


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
        assert (after.state.status, after.address, after.host_keys) == (Status.ACTIVE, ADDRESS, HOST_KEYS)
        assert (after.state.launched_at, after.state.expires_at) == (NOW, NOW + HOUR)

    def test_ready_server_without_an_address_is_waited_for(self) -> None:
        assert plan_for("preparing", server=make_server(address=None)) == (self.SOON,)

    def test_server_on_another_node_is_left_over_and_goes(self) -> None:
        plan = plan_for("preparing", server=make_server(node=NodeName("z")))
        assert plan == (DeleteServer(make_server().reservation_id, "uid-1"), self.SOON)

    def test_server_that_found_no_room_goes_and_the_request_is_back_in_the_queue(self) -> None:
        plan = plan_for("preparing", ServerPhase.UNPLACEABLE)
        assert isinstance(plan[0], DeleteServer)
        record = only_record(plan)
        assert (record.after.state.status, record.after.state.reason) == (
            Status.QUEUED,
            Reason.PLACEMENT_LOST,
        )
        assert record.event.kind is EventKind.REQUEUED
        assert "The cluster's words." in words_of(record.after.state.detail)

    def test_server_that_cannot_run_fails_the_reservation_with_the_words_of_the_cluster(self) -> None:
        record, deletion = plan_for("preparing", ServerPhase.FAILED)
        assert isinstance(record, Record)
        assert (record.after.state.status, record.after.state.reason) == (Status.FAILED, Reason.START_FAILED)
        assert "The cluster's words." in words_of(record.after.state.detail)
        assert isinstance(deletion, DeleteServer)

    @pytest.mark.parametrize("phase", [None, ServerPhase.STARTING, ServerPhase.UNPLACEABLE], ids=str)
    def test_start_without_progress_is_given_up(self, phase: ServerPhase | None) -> None:
        given_up_at = start_is_given_up_at(make_reservation(status=Status.PREPARING), POLICY)
        record = only_record(plan_for("preparing", phase, given_up_at))
        assert (record.after.state.status, record.after.state.reason) == (Status.FAILED, Reason.START_STALLED)

    def test_start_that_takes_too_long_is_given_up_with_the_words_of_the_cluster(self) -> None:
        begun = make_reservation(status=Status.PREPARING).state.placed_at
        assert begun is not None
        record = only_record(plan_for("preparing", ServerPhase.STARTING, begun + POLICY.start_limit))
        assert (record.after.state.status, record.after.state.reason) == (
            Status.FAILED,
            Reason.START_TIMED_OUT,
        )
        assert WORDS in words_of(record.after.state.detail)

    def test_progress_gives_the_start_more_time(self) -> None:
        late = start_is_given_up_at(make_reservation(status=Status.PREPARING), POLICY) + MINUTE
        server = make_server(phase=ServerPhase.STARTING, progress="Pulling the image.")
        record, look = plan_for("preparing", now=late, server=server)
        assert isinstance(record, Record)
        assert (words_of(record.after.memory.progress), record.after.memory.progress_at) == (
            "Pulling the image.",
            late,
        )
        assert look == LookAgain(late + POLICY.recheck)

    def test_that_a_server_is_there_is_noted_as_progress(self) -> None:
        placed = make_reservation(status=Status.PREPARING, progress=None)
        note, look = plan_for("preparing", ServerPhase.STARTING, reservation=placed)
        assert isinstance(note, Note)
        assert (note.after.memory.progress, note.after.memory.progress_at) == (None, NOW)
        assert words_of(note.after.state.detail) == words_of(placed.state.detail)
        assert look == self.SOON

    def test_nothing_is_given_up_while_the_cluster_is_silent(self) -> None:
        late = NOW + 5 * HOUR
        assert plan_for("preparing", now=late, cluster_answers=False) == (LookAgain(late + POLICY.recheck),)

    def test_server_that_answers_at_the_last_moment_wins_over_the_time_limit(self) -> None:
        record = only_record(plan_for("preparing", ServerPhase.READY, NOW + 5 * HOUR))
        assert record.after.state.status is Status.ACTIVE

    def test_last_look_is_when_the_start_is_given_up(self) -> None:
        given_up_at = start_is_given_up_at(make_reservation(status=Status.PREPARING), POLICY)
        plan = plan_for("preparing", ServerPhase.STARTING, given_up_at - POLICY.recheck / 2)
        assert plan == (LookAgain(given_up_at),)
