"""What a drain changes in the plans: for who is on the node, and for who was to come there."""

from __future__ import annotations

from dataclasses import replace

from gpudev.domain.drain import Drain, take_out
from gpudev.domain.names import NodeName
from gpudev.domain.plans.admission import Observation, plan_admission, predict_availability
from gpudev.domain.plans.turn import LookAgain, Note, Record, SetQueuePlaces, Tell
from gpudev.domain.queue import QueuePlace
from gpudev.domain.reservation import Reservation
from gpudev.domain.server import ServerPhase
from gpudev.texts.vocabulary import EventKind, OperationStatus, Reason, Status
from tests.support.domain_values import (
    HOUR,
    MINUTE,
    NOW,
    POLICY,
    QUAD,
    make_extension,
    make_node,
    make_reservation,
)
from tests.support.parts import change
from tests.support.reservation_plans import observe, only_record, plan_for
from tests.support.words import words_of

DRAIN = Drain(NodeName("a"), "quad", "new fans")


class TestWhoIsThere:
    def test_is_told_once_as_event_and_on_terminals(self) -> None:
        record = only_record(plan_for("active", ServerPhase.READY, drains=(DRAIN,)))
        assert record.event.kind is EventKind.NODE_LEAVES
        assert record.event.message == words_of(record.after.memory.drain_warning)
        assert "Node a is being taken out of service: new fans." in record.event.message
        telling, noted = plan_for("active", ServerPhase.READY, reservation=record.after, drains=(DRAIN,))
        assert isinstance(telling, Tell)
        assert [notice.file_name for notice in telling.notices] == ["WARN_NODE_LEAVES.txt"]
        assert isinstance(noted, Note)
        quiet = plan_for("active", ServerPhase.READY, reservation=noted.after, drains=(DRAIN,))
        assert quiet == (LookAgain(NOW + HOUR - 30 * MINUTE),)

    def test_stays_until_the_end(self) -> None:
        before = observe("active", ServerPhase.READY).reservation
        record = only_record(plan_for("active", ServerPhase.READY, reservation=before, drains=(DRAIN,)))
        assert change(record.after, drain_warning="") == before

    def test_is_told_when_the_node_stays_after_all(self) -> None:
        told = only_record(plan_for("active", ServerPhase.READY, drains=(DRAIN,))).after
        record = only_record(plan_for("active", ServerPhase.READY, reservation=told))
        assert (record.event.kind, words_of(record.after.memory.drain_warning)) == (EventKind.NODE_STAYS, "")
        assert "Node a stays in service after all." in record.event.message

    def test_does_not_get_more_time_that_was_asked_for_before(self) -> None:
        asked = make_extension(HOUR)
        record = only_record(plan_for("active", ServerPhase.READY, operations=(asked,), drains=(DRAIN,)))
        assert record.event.kind is EventKind.EXTENSION_REFUSED
        assert record.after.state.expires_at == record.before.state.expires_at
        assert "Node a is being taken out of service" in words_of(record.after.memory.extension_error)
        assert [outcome.status for outcome in record.outcomes] == [OperationStatus.FAILED]


def _observe(*waiting: Reservation, drains: tuple[Drain, ...] = (DRAIN,)) -> Observation:
    """Two full nodes, `a` until in an hour and `b` until in five."""
    holders = (
        make_reservation(90, status=Status.ACTIVE, nodes=("a",), gpu_count=4, expires_at=NOW + HOUR),
        make_reservation(91, status=Status.ACTIVE, nodes=("b",), gpu_count=4, expires_at=NOW + 5 * HOUR),
    )
    nodes = take_out((make_node("a", free=0), make_node("b", free=0)), drains)
    shown = frozenset((holder.id, node) for holder in holders for node in holder.nodes)
    return Observation(QUAD, waiting, holders, nodes, shown, POLICY, NOW)


def _queued(number: int, node: str, in_hours: int) -> Reservation:
    return make_reservation(
        number,
        status=Status.QUEUED,
        gpu_count=4,
        created_at=NOW - MINUTE,
        estimated_start_at=POLICY.grid.time_of(POLICY.grid.step_after(NOW + in_hours * HOUR + POLICY.grace)),
        planned_nodes=(NodeName(node),),
        last_queue_update=NOW,
    )


def _places(seen: Observation) -> dict[str, QueuePlace]:
    plan = plan_admission(seen)
    return {
        place.reservation_id: place
        for action in plan
        if isinstance(action, SetQueuePlaces)
        for place in action.places
    }


class TestWhoWaits:
    def test_only_who_was_to_come_there_is_planned_anew_and_told_why(self) -> None:
        hit, kept = _queued(1, "a", 1), _queued(2, "b", 5)
        plan = plan_admission(_observe(hit, kept))
        [told] = [action for action in plan if isinstance(action, Record)]
        assert (told.before.id, told.event.kind) == (hit.id, EventKind.REPLANNED)
        assert told.event.message.endswith(": a is out of service.")
        places = _places(_observe(hit, kept))
        assert (places[hit.id].planned_nodes, places[hit.id].position) == (("b",), 1)
        promised = (kept.forecast.planned_nodes, kept.forecast.estimated_start_at)
        assert (places[kept.id].planned_nodes, places[kept.id].estimated_start_at) == promised

    def test_without_another_node_it_keeps_its_place_and_has_a_reason(self) -> None:
        both = (DRAIN, replace(DRAIN, node=NodeName("b")))
        hit = _queued(1, "a", 1)
        place = _places(_observe(hit, drains=both))[hit.id]
        assert (place.position, place.reason, place.planned_nodes) == (1, Reason.NO_NODES, ())

    def test_a_newcomer_is_not_offered_the_room_that_comes_free_there(self) -> None:
        drained, in_service = _observe(), _observe(drains=())
        late = predict_availability(drained, plan_admission(drained)).next_start_at
        soon = predict_availability(in_service, plan_admission(in_service)).next_start_at
        assert soon is not None
        assert late is not None
        assert late - soon == 4 * HOUR
