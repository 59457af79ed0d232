"""What is done about one reservation, in every situation it can be found in.

The cross-product checks what holds always; the cases below it say what each situation leads to.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpudev.domain.plans.reservation import plan_reservation
from gpudev.domain.plans.turn import (
    CreateServer,
    LookAgain,
    Observation,
    Record,
    SettleOperations,
)
from gpudev.domain.reservation import clean, is_legal, tell
from gpudev.domain.server import ServerPhase
from gpudev.texts.vocabulary import EventKind, Status
from tests.support.parts import change
from tests.support.reservation_plans import (
    SITUATIONS,
    deletions,
    every_situation_in_which,
    is_unfinished,
    may_run,
    records,
)

every_situation = pytest.mark.parametrize("seen", SITUATIONS)


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
            assert record.after == change(record.before, warned_minutes=record.after.memory.warned_minutes)
        elif record.event.kind is EventKind.PROGRESS:
            words, now = record.event.message, seen.now
            assert record.after == change(record.before, detail=words, progress=words, progress_at=now)
        elif record.event.kind is EventKind.WARNING:
            assert record.after == tell(record.before, record.after.state.detail)
        else:
            assert is_legal(record.before.state.status, record.after.state.status)


@every_situation_in_which(lambda seen: seen.reservation.is_ended)
def test_a_terminal_state_is_never_overwritten(seen: Observation) -> None:
    for record in records(plan_reservation(seen)):
        assert record.after.state.status is seen.reservation.state.status
        assert record.after.state.reason is seen.reservation.state.reason
        assert record.after.state.ended_at == seen.reservation.state.ended_at


@every_situation_in_which(lambda seen: seen.reservation.is_ended)
def test_an_ended_reservation_creates_nothing(seen: Observation) -> None:
    assert not [action for action in plan_reservation(seen) if isinstance(action, CreateServer)]


@every_situation
def test_a_server_is_created_only_for_a_placed_request_that_has_none(seen: Observation) -> None:
    if any(isinstance(action, CreateServer) for action in plan_reservation(seen)):
        assert seen.reservation.state.status is Status.PREPARING
        assert seen.server is None or len(seen.server.members) < seen.reservation.spec.node_count
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
