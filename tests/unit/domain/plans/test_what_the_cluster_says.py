"""What the words of a cluster come to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpudev.domain.plans.reservation import plan_reservation
from gpudev.domain.plans.turn import (
    DeleteServer,
    DiscardPortSlot,
    Record,
)
from gpudev.domain.reservation import ANSWERS
from gpudev.domain.server import Cause, ServerPhase
from gpudev.texts.vocabulary import EventKind, Reason, Status
from tests.support.domain_values import (
    make_reservation,
    make_server,
)
from tests.support.reservation_plans import (
    observe,
    records,
)
from tests.support.words import words_of


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
        assert (record.after.state.status, record.after.state.reason) == (Status.FAILED, reason)
        assert words_of(record.after.state.detail).endswith("Words.")
        assert isinstance(deletion, DeleteServer)

    @pytest.mark.parametrize("cause", [Cause.NODE_LOST, Cause.EVICTED])
    def test_a_start_on_an_unfit_node_goes_back_to_the_queue(self, cause: Cause) -> None:
        server = make_server(phase=ServerPhase.FAILED, cause=cause)
        (record,) = records(plan_reservation(observe("preparing", None, server=server)))
        assert (record.after.state.status, record.after.state.reason) == (
            Status.QUEUED,
            Reason.PLACEMENT_LOST,
        )

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
        assert (record.after.state.status, record.after.state.reason) == (Status.FAILED, reason)

    def test_a_server_that_went_with_its_node_is_not_said_to_have_been_deleted(self) -> None:
        (record,) = records(plan_reservation(observe("active", None, has_node=False)))
        assert record.after.state.reason is Reason.NODE_LOST

    def test_a_server_that_crashes_before_it_answered_has_failed(self) -> None:
        (record,) = records(plan_reservation(observe("preparing", ServerPhase.CRASHING)))
        assert (record.after.state.status, record.after.state.reason) == (Status.FAILED, Reason.START_FAILED)

    def test_a_server_with_work_in_it_that_crashes_is_warned_about_and_kept(self) -> None:
        (record,) = records(plan_reservation(observe("active", ServerPhase.CRASHING)))
        assert (record.after.state.status, record.event.kind) == (Status.ACTIVE, EventKind.WARNING)

    def test_a_warning_is_told_once_and_so_is_its_end(self) -> None:
        warned = make_server(warning="The node is silent.")
        seen = observe("active", None, server=warned)
        (record,) = records(plan_reservation(seen))
        assert record.event.kind is EventKind.WARNING
        assert record.event.message == "The node is silent."
        again = replace(seen, reservation=record.after)
        assert records(plan_reservation(again)) == []
        (over,) = records(plan_reservation(replace(again, server=make_server())))
        assert over.after.state.detail == ANSWERS
        assert records(plan_reservation(replace(again, reservation=over.after, server=make_server()))) == []

    def test_progress_is_told_once(self) -> None:
        seen = observe(
            "preparing", None, server=make_server(phase=ServerPhase.STARTING, progress="Fetching.")
        )
        (record,) = records(plan_reservation(seen))
        assert (record.event.kind, words_of(record.after.state.detail)) == (EventKind.PROGRESS, "Fetching.")
        assert records(plan_reservation(replace(seen, reservation=record.after))) == []

    def test_the_address_of_a_placement_goes_before_the_placement_is_given_up(self) -> None:
        placed = make_reservation(status=Status.PREPARING, port_slot="slot-1")
        seen = replace(observe("preparing", ServerPhase.UNPLACEABLE), reservation=placed)
        deletion, discarding, record = plan_reservation(seen)
        assert isinstance(deletion, DeleteServer)
        assert discarding == DiscardPortSlot("slot-1")
        assert isinstance(record, Record)
        assert record.after.location.port_slot == ""

    def test_the_address_goes_before_a_reservation_is_clean(self) -> None:
        ended = make_reservation(status=Status.CANCELLED, port_slot="slot-1")
        discarding, record = plan_reservation(replace(observe("cancelled", None), reservation=ended))
        assert discarding == DiscardPortSlot("slot-1")
        assert isinstance(record, Record)
        assert record.event.kind is EventKind.CLEANED
