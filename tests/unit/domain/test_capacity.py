"""How much room there is: the cluster's count, less what was promised and is not to be seen there yet."""

from __future__ import annotations

from typing import Any

import pytest

from gpudev.domain.capacity import (
    Node,
    could_hold,
    count_free_slots,
    list_shown,
    measure_availability,
)
from gpudev.domain.names import NodeName
from gpudev.domain.reservation import Reservation
from gpudev.domain.server import ServerPhase
from gpudev.texts.vocabulary import PLACED, TERMINAL, Status
from tests.support.domain_values import (
    NOW,
    OCTO,
    QUAD,
    SLOTTED,
    make_id,
    make_member,
    make_node,
    make_reservation,
    make_server,
)

NOBODY: frozenset[Any] = frozenset()


@pytest.mark.parametrize("status", sorted(PLACED))
def test_holder_that_the_cluster_does_not_show_is_subtracted(status: Status) -> None:
    holder = make_reservation(status=status, gpu_count=2)
    assert count_free_slots([make_node(free=4)], QUAD, [holder], NOBODY) == {"a": 2}


def test_holder_that_the_cluster_shows_is_not_subtracted_twice() -> None:
    holder = make_reservation(status=Status.ACTIVE, gpu_count=2)
    assert count_free_slots([make_node(free=2)], QUAD, [holder], {(holder.id, NodeName("a"))}) == {"a": 2}


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_ended_reservation_holds_its_room_until_it_is_cleaned_away(status: Status) -> None:
    ended = make_reservation(status=status, gpu_count=4)
    cleaned = make_reservation(status=status, gpu_count=4, cleaned_at=NOW)
    assert count_free_slots([make_node(free=4)], QUAD, [ended], NOBODY) == {"a": 0}
    assert count_free_slots([make_node(free=4)], QUAD, [cleaned], NOBODY) == {"a": 4}


def test_waiting_request_and_one_that_never_had_a_node_hold_nothing() -> None:
    others = [make_reservation(1), make_reservation(2, status=Status.CANCELLED, node=None)]
    assert count_free_slots([make_node(free=4)], QUAD, others, NOBODY) == {"a": 4}


def test_nodes_of_other_types_and_out_of_service_give_no_room() -> None:
    nodes = [make_node("a"), make_node("b", is_schedulable=False), make_node("c", gpu_type="other")]
    on_b = make_reservation(status=Status.ACTIVE, node="b")
    assert count_free_slots(nodes, QUAD, [on_b], NOBODY) == {"a": 4}


def test_cpu_reservation_takes_one_slot() -> None:
    holder = make_reservation(status=Status.ACTIVE, gpu_count=0, gpu_type=SLOTTED.name)
    node = make_node(slots=3, gpu_type=SLOTTED.name)
    assert count_free_slots([node], SLOTTED, [holder], NOBODY) == {"a": 2}


def test_room_that_is_overdrawn_shows_as_less_than_none() -> None:
    """Somebody else took GPUs of the node; a negative count keeps the books right."""
    holder = make_reservation(status=Status.PREPARING, gpu_count=4)
    assert count_free_slots([make_node(free=1)], QUAD, [holder], NOBODY) == {"a": -3}


@pytest.mark.parametrize("phase", ServerPhase, ids=str)
def test_server_accounts_for_its_holder_unless_it_found_no_room(phase: ServerPhase) -> None:
    holder = make_reservation(status=Status.PREPARING)
    shown = list_shown([holder], {holder.id: make_server(phase=phase)})
    assert shown == (NOBODY if phase is ServerPhase.UNPLACEABLE else {(holder.id, "a")})


def test_server_left_over_on_another_node_does_not_account_for_its_holder() -> None:
    holder = make_reservation(status=Status.PREPARING, node="b")
    assert list_shown([holder], {holder.id: make_server(node="a")}) == NOBODY


def test_holder_without_a_server_and_server_without_a_holder_are_not_shown() -> None:
    holder = make_reservation(1, status=Status.PREPARING)
    assert list_shown([holder], {make_id(2): make_server(2)}) == NOBODY


FULL = make_node("b", slots=4, free=0)


@pytest.mark.parametrize(
    "nodes, gpus, count, holds",
    [
        pytest.param([], 1, 1, False, id="none"),
        pytest.param([make_node("a", slots=2), FULL], 4, 1, True, id="a full one counts"),
        pytest.param([make_node("a", slots=4, is_schedulable=False)], 1, 1, False, id="out of service"),
        pytest.param([make_node("a", slots=4, gpu_type="other")], 1, 1, False, id="another type"),
        pytest.param([make_node("a"), FULL], 8, 1, False, id="two nodes are not one"),
        pytest.param([make_node("a"), FULL], 8, 2, True, id="two nodes for a gang"),
        pytest.param([make_node("a"), make_node("b", slots=3)], 8, 2, False, id="one too small for a gang"),
        pytest.param([make_node("a"), FULL], 12, 3, False, id="too few nodes for a gang"),
    ],
)
def test_whether_nodes_in_service_could_ever_hold_a_request(
    nodes: list[Node], gpus: int, count: int, *, holds: bool
) -> None:
    request = make_reservation(gpu_count=gpus, node_count=count)
    assert could_hold(nodes, QUAD, request) is holds


def test_gang_holds_room_on_each_of_its_nodes() -> None:
    gang = make_reservation(status=Status.PREPARING, nodes="ab", gpu_count=8)
    nodes = [make_node("a"), make_node("b"), make_node("c")]
    assert count_free_slots(nodes, QUAD, [gang], NOBODY) == {"a": 0, "b": 0, "c": 4}


def test_each_member_of_a_gang_is_accounted_for_on_its_own_node() -> None:
    """One member is shown, one found no room, one is not there yet, and one stands elsewhere."""
    gang = make_reservation(status=Status.PREPARING, nodes="abcd", gpu_count=16)
    members = (
        make_member(0, node="a"),
        make_member(1, ServerPhase.UNPLACEABLE, node="b"),
        make_member(3, node="z"),
    )
    shown = list_shown([gang], {gang.id: make_server(members=members)})
    assert shown == {(gang.id, "a")}
    nodes = [make_node("a", free=0), *(make_node(name) for name in "bcd")]
    assert count_free_slots(nodes, QUAD, [gang], shown) == {"a": 0, "b": 0, "c": 0, "d": 0}


def octo_nodes(*free: int, slots: int = 8) -> list[Node]:
    return [
        make_node(f"n{number}", slots=slots, free=count, gpu_type=OCTO.name)
        for number, count in enumerate(free)
    ]


@pytest.mark.parametrize(
    "free, max_reservable, full_nodes",
    [
        pytest.param((), 0, 0, id="no nodes"),
        pytest.param((0, 0), 0, 0, id="all taken"),
        pytest.param((3, 5), 5, 0, id="no node is free: the best one"),
        pytest.param((8, 5), 8, 1, id="one free node"),
        pytest.param((8, 8, 3), 16, 2, id="two free nodes"),
        pytest.param((8,) * 6, 32, 6, id="at most four together"),
    ],
)
def test_most_that_can_be_reserved_of_a_multinode_type(
    free: tuple[int, ...], max_reservable: int, full_nodes: int
) -> None:
    measured = measure_availability(octo_nodes(*free), OCTO, [], NOBODY)
    assert (measured.max_reservable, measured.full_nodes_available) == (max_reservable, full_nodes)
    assert (measured.total, measured.available, measured.nodes) == (8 * len(free), sum(free), len(free))


def test_type_of_single_nodes_never_offers_more_than_one_node() -> None:
    nodes = [make_node("a"), make_node("b"), make_node("c", free=1)]
    measured = measure_availability(nodes, QUAD, [], NOBODY)
    assert (measured.max_reservable, measured.full_nodes_available, measured.available) == (4, 2, 9)


def test_node_smaller_than_its_type_offers_what_it_has() -> None:
    measured = measure_availability(octo_nodes(1, slots=1), OCTO, [], NOBODY)
    assert (measured.max_reservable, measured.full_nodes_available) == (1, 1)


def test_node_whose_gpus_are_not_up_yet_is_not_a_free_node() -> None:
    measured = measure_availability(octo_nodes(0, slots=0), OCTO, [], NOBODY)
    assert (measured.nodes, measured.full_nodes_available, measured.max_reservable) == (1, 0, 0)


def test_node_out_of_service_counts_in_the_total_but_has_nothing_to_give() -> None:
    nodes = [make_node("a"), make_node("b", is_schedulable=False)]
    measured = measure_availability(nodes, QUAD, [], NOBODY)
    assert (measured.total, measured.available, measured.nodes) == (8, 4, 2)


def test_overdrawn_node_is_shown_as_full() -> None:
    holders: list[Reservation] = [make_reservation(status=Status.PREPARING, gpu_count=4)]
    measured = measure_availability([make_node(free=1)], QUAD, holders, NOBODY)
    assert measured.available == 0


def test_simulated_nodes_are_said_to_be() -> None:
    assert measure_availability([make_node(is_simulated=True)], QUAD, [], NOBODY).is_simulated
    assert not measure_availability([make_node()], QUAD, [], NOBODY).is_simulated
