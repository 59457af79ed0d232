"""Stories in a model of the world: what becomes of a request, step by step, when this or that happens."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from gpudev.domain.names import NodeName
from gpudev.texts.vocabulary import Reason, Status
from tests.support.domain_values import HOUR, MINUTE, QUAD
from tests.support.model_world import Fate, World

A, B = NodeName("a"), NodeName("b")


def make_world(**changes: Any) -> World:
    return World(QUAD, {A: 4}, **changes)


def test_request_that_fits_becomes_active_ends_in_time_and_leaves_nothing() -> None:
    world = make_world()
    one = world.submit(4, HOUR)
    world.settle()
    assert world.rows[one].state.status is Status.ACTIVE
    started = world.now
    world.run_to_the_end()
    assert (world.rows[one].state.status, world.servers) == (Status.EXPIRED, {})
    assert world.now - started == HOUR + world.policy.grace


def test_queue_moves_up_as_reservations_end_and_starts_when_it_was_told() -> None:
    world = make_world()
    ids = [world.submit(4, HOUR) for _ in range(3)]
    world.settle()
    promised = [world.rows[one].forecast.estimated_start_at for one in ids[1:]]
    world.run_to_the_end()
    launched = [world.rows[one].state.launched_at for one in ids[1:]]
    assert all(at and promise and at <= promise for at, promise in zip(launched, promised, strict=True))


def test_cancel_gives_the_room_to_the_next() -> None:
    world = make_world()
    first, second = world.submit(4, HOUR), world.submit(4, HOUR)
    world.settle()
    world.cancel(first)
    world.settle()
    assert world.rows[first].state.status is Status.CANCELLED
    assert world.rows[second].state.status is Status.ACTIVE


@pytest.mark.parametrize("survives", [0, 1, 2, 3])
def test_process_that_dies_after_every_few_actions_still_gets_there(survives: int) -> None:
    """Each turn dies after so many actions; those that do nothing at all are helped by one that does."""
    world = make_world()
    one = world.submit(1, HOUR)
    for _ in range(10):
        world.execute(world.plan_admission(), survives)
        world.execute(world.plan_turn(one), survives)
        world.refresh_view()
        world.befall(one, Fate.PROCEEDS)
    assert world.rows[one].state.status is (Status.ACTIVE if survives else Status.PENDING)
    world.run_to_the_end()
    assert world.rows[one].state.status is Status.EXPIRED


def test_second_writer_that_saw_the_same_version_is_dropped() -> None:
    world = make_world()
    one = world.submit(1, HOUR)
    first, second = world.plan_admission(), world.plan_admission()
    assert world.execute(first) == 1
    assert world.execute(second) == 0
    assert world.rows[one].version == 2


def test_server_that_is_created_after_the_clean_up_is_taken_away() -> None:
    world = make_world()
    one = world.submit(1, HOUR)
    world.execute(world.plan_admission())
    slow = world.plan_turn(one)
    world.cancel(one)
    world.settle()
    assert world.rows[one].is_cleaned
    world.execute(slow)
    assert world.servers
    world.settle()
    assert world.servers == {}


def test_refused_server_sends_its_request_back_and_it_keeps_its_place() -> None:
    world = make_world(refuses_next=True)
    first, second = world.submit(4, HOUR), world.submit(4, timedelta(hours=2))
    world.settle()
    assert world.turned_away == []
    assert (world.rows[first].state.status, world.rows[second].state.status) == (Status.ACTIVE, Status.QUEUED)


def make_wide_world(**changes: Any) -> World:
    return World(QUAD, {A: 4, B: 4}, **changes)


def test_gang_waits_for_whole_nodes_and_starts_when_it_was_told() -> None:
    world = make_wide_world()
    small, gang = world.submit(1, HOUR), world.submit(8, HOUR, node_count=2)
    world.settle()
    promised = world.rows[gang].forecast.estimated_start_at
    assert (world.rows[small].state.status, world.rows[gang].state.status) == (Status.ACTIVE, Status.QUEUED)
    world.run_to_the_end()
    launched = world.rows[gang].state.launched_at
    assert promised is not None
    assert launched is not None
    assert launched <= promised
    assert world.rows[gang].nodes == (A, B)


@pytest.mark.parametrize("fate", [Fate.BREAKS, Fate.VANISHES])
@pytest.mark.parametrize("rank", [0, 1])
def test_member_that_is_lost_ends_all_with_one_reason(fate: Fate, rank: int) -> None:
    world = make_wide_world()
    gang = world.submit(8, HOUR, node_count=2)
    world.settle()
    world.befall(gang, fate, rank)
    world.settle()
    reasons = {Fate.BREAKS: Reason.SERVER_FAILED, Fate.VANISHES: Reason.POD_DELETED}
    assert (world.rows[gang].state.status, world.rows[gang].state.reason) == (Status.FAILED, reasons[fate])
    assert (world.servers, world.rows[gang].is_cleaned) == ({}, True)


def test_gang_whose_creation_died_half_way_is_made_whole_under_one_uid() -> None:
    world = make_wide_world(next_creation_dies=True)
    gang = world.submit(8, HOUR, node_count=2)
    world.execute(world.plan_admission())
    world.execute(world.plan_turn(gang))
    [first] = world.servers[gang].members
    uid = world.servers[gang].uid
    world.settle()
    assert first.rank == 0
    assert (world.rows[gang].state.status, world.servers[gang].uid) == (Status.ACTIVE, uid)


def test_gang_of_which_one_member_finds_no_room_goes_back_as_a_whole() -> None:
    world = make_wide_world(refuses_next=True)
    gang = world.submit(8, HOUR, node_count=2)
    world.execute(world.plan_admission())
    world.execute(world.plan_turn(gang))
    world.execute(world.plan_turn(gang))
    assert (world.rows[gang].state.status, world.rows[gang].state.reason) == (
        Status.PREPARING,
        Reason.PLACEMENT_LOST,
    )
    world.befall(gang, Fate.PROCEEDS)
    world.execute(world.plan_turn(gang))
    assert (world.rows[gang].state.status, world.rows[gang].location.members) == (Status.QUEUED, ())
    world.settle()
    assert world.rows[gang].state.status is Status.ACTIVE


def test_room_that_a_lost_gang_still_has_is_promised_to_nobody() -> None:
    world = make_wide_world(reads_fresh=True)
    gang = world.submit(8, HOUR, node_count=2)
    world.execute(world.plan_admission())
    world.execute(world.plan_turn(gang))
    world.advance(MINUTE)
    world.befall(gang, Fate.VANISHES, 1)
    world.refuses_next = True
    world.execute(world.plan_turn(gang))
    world.submit(1, HOUR)
    for _ in range(2):
        world.execute(world.plan_admission())
        for one in world.rows:
            world.execute(world.plan_turn(one))
    assert world.turned_away == []
    world.run_to_the_end()
    assert world.servers == {}
