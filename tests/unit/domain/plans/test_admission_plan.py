"""Who starts now, and what the others are promised: first come, first served, nothing given twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudev.domain.capacity import Held
from gpudev.domain.names import NodeName, ReservationId
from gpudev.domain.plans.admission import Observation, plan_admission, predict_availability
from gpudev.domain.plans.turn import AdmissionAction, Record, SetQueuePlaces
from gpudev.domain.queue import QueuePlace
from gpudev.domain.reservation import Reservation, is_legal
from gpudev.texts.fact import reason_fact
from gpudev.texts.sentences import say
from gpudev.texts.vocabulary import EventKind, Reason, Status
from tests.support.budgets import QUICK
from tests.support.domain_values import (
    HOUR,
    MINUTE,
    NOW,
    POLICY,
    QUAD,
    SLOTTED,
    make_id,
    make_node,
    make_reservation,
)
from tests.support.parts import change
from tests.support.words import words_of

Plan = tuple[AdmissionAction, ...]


def observe(
    waiting: Iterable[Reservation], holders: Iterable[Reservation] = (), **changes: Any
) -> Observation:
    """One node of four GPUs whose room the holders, all of them shown, have taken in part."""
    holders = tuple(holders)
    taken = sum(QUAD.slots_for(holder.spec.gpu_count) for holder in holders)
    seen = Observation(
        gpu_type=QUAD,
        waiting=tuple(waiting),
        holders=holders,
        nodes=(make_node(free=4 - taken),),
        shown=frozenset((holder.id, node) for holder in holders for node in holder.nodes),
        policy=POLICY,
        now=NOW,
    )
    return replace(seen, **changes)


def request(number: int, slots: int = 1, **changes: Any) -> Reservation:
    return make_reservation(number, gpu_count=slots, **changes)


def holder(number: int, slots: int, ends_in: timedelta = HOUR) -> Reservation:
    return make_reservation(number, status=Status.ACTIVE, gpu_count=slots, expires_at=NOW + ends_in)


def placed(plan: Plan) -> dict[ReservationId, str]:
    """The nodes of those that were placed; they have names of one letter."""
    return {
        action.before.id: "".join(action.after.nodes)
        for action in plan
        if isinstance(action, Record) and action.after.state.status is Status.PREPARING
    }


def places(plan: Plan) -> dict[ReservationId, QueuePlace]:
    return {
        place.reservation_id: place
        for action in plan
        if isinstance(action, SetQueuePlaces)
        for place in action.places
    }


def apply_places(seen: Observation, plan: Plan) -> Observation:
    """The observation of the next pass, the plan carried out and nothing else changed."""
    written = places(plan)
    rows = tuple(
        change(
            row,
            status=Status.QUEUED,
            queue_position=written[row.id].position,
            estimated_start_at=written[row.id].estimated_start_at,
            planned_nodes=written[row.id].planned_nodes,
            likely_start=written[row.id].likely_start,
            reason=written[row.id].reason,
            detail=written[row.id].detail,
            last_queue_update=seen.now,
        )
        for row in seen.waiting
        if row.id in written
    )
    return replace(seen, waiting=rows)


class TestPlacing:
    def test_requests_that_fit_are_placed_at_once(self) -> None:
        plan = plan_admission(observe([request(1, 2), request(2, 1)]))
        assert placed(plan) == {make_id(1): "a", make_id(2): "a"}
        assert not places(plan)

    def test_first_come_is_first_served_whatever_the_order_of_reading(self) -> None:
        plan = plan_admission(observe([request(3, 4), request(1, 4), request(2, 4)]))
        assert list(placed(plan)) == [make_id(1)]
        assert [place.position for place in places(plan).values()] == [1, 2]

    def test_later_one_starts_first_where_the_head_of_the_line_does_not_wait_for_it(self) -> None:
        short = request(2, 1, duration=0.5 * HOUR)
        plan = plan_admission(observe([request(1, 4), short], [holder(9, 2)]))
        assert placed(plan) == {make_id(2): "a"}
        assert places(plan)[make_id(1)].estimated_start_at == NOW + HOUR + 5 * MINUTE

    def test_later_one_that_would_delay_the_head_of_the_line_waits(self) -> None:
        long = request(2, 1, duration=1.1 * HOUR)
        plan = plan_admission(observe([request(1, 4), long], [holder(9, 2)]))
        assert not placed(plan)
        assert places(plan)[make_id(2)].estimated_start_at == NOW + 2 * HOUR + 10 * MINUTE

    def test_request_that_no_node_could_ever_take_holds_back_nobody(self) -> None:
        plan = plan_admission(observe([request(1, 8), request(2, 4)]))
        assert list(placed(plan)) == [make_id(2)]
        assert places(plan)[make_id(1)].reason is Reason.NO_NODES
        assert places(plan)[make_id(1)].estimated_start_at is None

    def test_request_is_too_large_only_for_nodes_in_service(self) -> None:
        nodes = (make_node("a"), make_node("b", slots=8, is_schedulable=False))
        plan = plan_admission(observe([request(1, 8), request(2, 1)], nodes=nodes))
        assert placed(plan) == {make_id(2): "a"}

    def test_nothing_is_placed_where_no_node_is(self) -> None:
        plan = plan_admission(observe([request(1)], nodes=()))
        assert not placed(plan)
        assert places(plan)[make_id(1)].reason is Reason.NO_NODES

    def test_holder_that_the_cluster_does_not_show_yet_keeps_its_room(self) -> None:
        unseen = make_reservation(9, status=Status.PREPARING, gpu_count=4)
        seen = observe([request(1)], holders=[unseen], nodes=(make_node(free=4),), shown=frozenset())
        assert not placed(plan_admission(seen))

    def test_requests_pack_onto_the_fullest_node(self) -> None:
        nodes = (make_node("a", free=4), make_node("b", free=2))
        plan = plan_admission(observe([request(1, 2), request(2, 1)], nodes=nodes))
        assert placed(plan) == {make_id(1): "b", make_id(2): "a"}

    def test_placing_takes_the_request_out_of_the_line_and_tells_its_owner(self) -> None:
        [record] = plan_admission(observe([request(1, status=Status.QUEUED, queue_position=1)]))
        assert isinstance(record, Record)
        assert (record.after.state.placed_at, record.after.forecast.queue_position) == (NOW, None)
        assert (record.event.kind, record.event.message) == (EventKind.PLACED, "Placed on a.")

    def test_cpu_node_takes_three_users(self) -> None:
        waiting = [request(number, 0, gpu_type=SLOTTED.name) for number in (1, 2, 3, 4)]
        node = make_node(slots=3, gpu_type=SLOTTED.name)
        plan = plan_admission(observe(waiting, nodes=(node,), gpu_type=SLOTTED))
        assert len(placed(plan)) == 3
        assert words_of(places(plan)[make_id(4)].detail).startswith(
            "A slotted slot on one node: a has room at"
        )


class TestGangs:
    """Two nodes of four GPUs."""

    def gang(self, number: int = 1, **changes: Any) -> Reservation:
        return request(number, 8, node_count=2, **changes)

    def nodes(self, *free: int) -> tuple[Any, ...]:
        return tuple(make_node(name, free=count) for name, count in zip("abcd", free, strict=False))

    def test_gang_is_placed_on_nodes_that_are_free_as_a_whole(self) -> None:
        plan = plan_admission(observe([self.gang()], nodes=self.nodes(4, 3, 4)))
        assert placed(plan) == {make_id(1): "ac"}
        [record] = plan
        assert isinstance(record, Record)
        assert record.event.message == "Placed on a, c."

    def test_gang_that_waits_for_its_disk_is_told_so(self) -> None:
        seen = observe([self.gang()], nodes=self.nodes(4, 4), disk_busy=frozenset({make_id(1)}))
        place = places(plan_admission(seen))[make_id(1)]
        assert (place.reason, place.estimated_start_at) == (Reason.DISK_BUSY, None)

    def test_gang_gets_all_of_its_nodes_or_none(self) -> None:
        held = make_reservation(9, status=Status.ACTIVE, node="b", expires_at=NOW + HOUR)
        plan = plan_admission(observe([self.gang()], [held], nodes=self.nodes(4, 3)))
        assert not placed(plan)
        assert places(plan)[make_id(1)].planned_nodes == ("a", "b")

    def test_gang_that_waits_is_told_which_node_is_free_last_and_when(self) -> None:
        held = make_reservation(9, status=Status.ACTIVE, node="b", expires_at=NOW + HOUR)
        plan = plan_admission(observe([self.gang()], [held], nodes=self.nodes(4, 3)))
        place = places(plan)[make_id(1)]
        assert (place.reason, place.estimated_start_at) == (
            Reason.WAITING_FOR_CAPACITY,
            NOW + HOUR + 5 * MINUTE,
        )
        assert words_of(place.detail) == (
            "8 quad GPUs on 2 whole nodes: b has room at 2030-01-01 13:05 UTC, when 00000009 ends."
        )

    def test_gang_that_waits_for_strangers_is_not_told_of_one_node(self) -> None:
        place = places(plan_admission(observe([self.gang()], nodes=self.nodes(4, 3))))[make_id(1)]
        assert words_of(place.detail) == "Not enough nodes of this type are free as a whole."

    def test_gang_that_is_larger_than_the_cluster_holds_back_nobody(self) -> None:
        plan = plan_admission(observe([self.gang(), request(2)], nodes=self.nodes(4)))
        assert placed(plan) == {make_id(2): "a"}
        place = places(plan)[make_id(1)]
        assert (place.reason, place.estimated_start_at) == (Reason.NO_NODES, None)
        assert words_of(place.detail) == "Not enough whole nodes of this type are in service."

    def test_gang_keeps_later_ones_from_its_nodes_that_would_make_it_wait(self) -> None:
        held = make_reservation(9, status=Status.ACTIVE, node="b", gpu_count=4, expires_at=NOW + HOUR)
        line = [self.gang(), request(2, 4, duration=2 * HOUR), request(3, 4, duration=HOUR)]
        plan = plan_admission(observe(line, [held], nodes=self.nodes(4, 0)))
        assert placed(plan) == {make_id(3): "a"}

    def test_gang_of_which_one_member_is_not_shown_yet_keeps_that_node(self) -> None:
        held = make_reservation(9, status=Status.PREPARING, nodes="ab", gpu_count=8)
        seen = observe([request(1)], [held], nodes=self.nodes(0, 4), shown=frozenset({(held.id, "a")}))
        assert not placed(plan_admission(seen))


class TestQueuePlaces:
    def test_positions_count_from_one_in_order(self) -> None:
        plan = plan_admission(observe([request(number, 4) for number in (3, 1, 2)], [holder(9, 1)]))
        positions = {number: places(plan)[make_id(number)].position for number in (1, 2, 3)}
        assert positions == {1: 1, 2: 2, 3: 3}

    def test_first_in_line_is_told_whose_end_makes_its_room_and_when(self) -> None:
        plan = plan_admission(observe([request(1, 4)], [holder(9, 1), holder(10, 3, 2 * HOUR)]))
        place = places(plan)[make_id(1)]
        assert place.reason is Reason.WAITING_FOR_CAPACITY
        assert place.estimated_start_at == NOW + 2 * HOUR + 5 * MINUTE
        assert (
            words_of(place.detail)
            == "4 quad GPUs on one node: a has room at 2030-01-01 14:05 UTC, when 0000000a ends."
        )

    def test_who_waits_for_one_that_waits_is_told_of_that_one(self) -> None:
        plan = plan_admission(observe([request(1, 4), request(2, 1)], [holder(9, 4)]))
        second = places(plan)[make_id(2)]
        assert second.reason is Reason.WAITING_IN_LINE
        assert words_of(second.detail) == (
            "1 quad GPU on one node: a has room at 2030-01-01 14:10 UTC, "
            "when 00000001, which starts before, ends."
        )

    def test_of_several_who_end_together_the_largest_is_named_and_then_the_first(self) -> None:
        holders = [holder(11, 2), holder(9, 1), holder(10, 1)]
        assert "when 0000000b ends" in words_of(
            places(plan_admission(observe([request(1, 4)], holders)))[make_id(1)].detail
        )
        alike = [holder(11, 1), holder(9, 1), holder(10, 2, 0.5 * HOUR)]
        assert "when 00000009 ends" in words_of(
            places(plan_admission(observe([request(1, 4)], alike)))[make_id(1)].detail
        )

    def test_request_behind_an_impossible_one_is_first_of_those_that_wait_for_room(self) -> None:
        plan = plan_admission(observe([request(1, 8), request(2, 4)], [holder(9, 1)]))
        reasons = [places(plan)[make_id(number)].reason for number in (1, 2)]
        assert reasons == [Reason.NO_NODES, Reason.WAITING_FOR_CAPACITY]

    def test_room_that_strangers_hold_has_no_time_and_nobody_is_promised_it(self) -> None:
        """Two of the four GPUs are taken by something that is not ours. Who needs none of them goes on."""
        plan = plan_admission(observe([request(1, 4), request(2, 1)], nodes=(make_node(free=2),)))
        assert placed(plan) == {make_id(2): "a"}
        place = places(plan)[make_id(1)]
        assert (place.estimated_start_at, place.planned_nodes) == (None, ())
        assert (place.reason, words_of(place.detail)) == (
            Reason.WAITING_FOR_CAPACITY,
            say(reason_fact(Reason.WAITING_FOR_CAPACITY)),
        )

    def test_request_placed_in_this_very_pass_is_reckoned_with(self) -> None:
        plan = plan_admission(observe([request(1, 4, duration=3 * HOUR), request(2, 4)]))
        assert places(plan)[make_id(2)].estimated_start_at == NOW + 3 * HOUR + 5 * MINUTE
        assert places(plan)[make_id(2)].reason is Reason.WAITING_FOR_CAPACITY
        assert "when 00000001 ends" in words_of(places(plan)[make_id(2)].detail)

    def test_one_gpu_is_spoken_of_in_the_singular(self) -> None:
        plan = plan_admission(observe([request(1)], [holder(9, 4)]))
        assert words_of(places(plan)[make_id(1)].detail).startswith("1 quad GPU on one node")

    def test_pending_request_becomes_queued_once(self) -> None:
        seen = observe([request(1)], [holder(9, 4)])
        plan = plan_admission(seen)
        [record] = [action for action in plan if isinstance(action, Record)]
        assert (record.before.state.status, record.after.state.status) == (Status.PENDING, Status.QUEUED)
        assert record.event.kind is EventKind.QUEUED
        assert record.event.message.startswith("Waiting at position 1. 1 quad GPU")
        assert plan_admission(apply_places(seen, plan)) == ()

    def test_unchanged_place_is_written_again_only_when_it_grows_old(self) -> None:
        seen = observe([request(1)], [holder(9, 4)])
        after = apply_places(seen, plan_admission(seen))
        nearly = replace(after, now=NOW + POLICY.queue_refresh - timedelta(seconds=1))
        old = replace(after, now=NOW + POLICY.queue_refresh)
        assert plan_admission(nearly) == ()
        assert places(plan_admission(old)) == places(plan_admission(seen))

    def test_those_behind_one_that_left_move_up_at_once(self) -> None:
        seen = observe([request(1, 4), request(2, 4)], [holder(9, 1)])
        after = apply_places(seen, plan_admission(seen))
        left = replace(after, waiting=after.waiting[1:])
        assert places(plan_admission(left))[make_id(2)].position == 1

    def test_changed_place_is_written_at_once_and_alone(self) -> None:
        seen = observe([request(1, 4), request(2, 4)], [holder(9, 1)])
        after = apply_places(seen, plan_admission(seen))
        newcomer = request(3, 4)
        plan = plan_admission(replace(after, waiting=(*after.waiting, newcomer)))
        assert list(places(plan)) == [newcomer.id]


class TestPrediction:
    def predict(self, seen: Observation) -> tuple[int, object]:
        predicted = predict_availability(seen, plan_admission(seen))
        return predicted.available, predicted.next_start_at

    def test_what_the_plan_gives_away_is_not_available_any_more(self) -> None:
        assert self.predict(observe([request(1, 2)])) == (2, None)

    def test_newcomer_starts_when_room_comes_back(self) -> None:
        assert self.predict(observe([], [holder(9, 4)])) == (0, NOW + HOUR + 5 * MINUTE)

    def test_newcomer_fills_a_hole_or_goes_behind_the_line(self) -> None:
        seen = observe([request(1, 4)], [holder(9, 2)])
        assert self.predict(seen) == (2, None)
        tight = observe([request(1, 4)], [holder(9, 2, 0.5 * HOUR)])
        assert self.predict(tight) == (2, NOW + 1.5 * HOUR + 10 * MINUTE)

    def test_nothing_is_promised_where_no_node_is(self) -> None:
        assert self.predict(observe([], nodes=())) == (0, None)


COUNTS = st.sampled_from([1, 2, 4, 8])
SIZES = st.sampled_from([(1, 1), (2, 1), (4, 1), (8, 1), (8, 2), (12, 3), (16, 2), (16, 4)])
"""GPUs and nodes."""
NAMES = ["a", "b", "c"]
IN_SERVICE = st.sampled_from([True, True, True, False])


@st.composite
def observations(draw: st.DrawFn) -> Observation:
    """Nodes filled at most to the brim by holders, shown or not, by ended ones and by strangers."""
    slots = {NodeName(name): draw(st.sampled_from([4, 8])) for name in NAMES[: draw(st.integers(0, 3))]}
    room, free_by_cluster = dict(slots), dict(slots)
    holders: list[Reservation] = []
    shown: set[Held] = set()
    for number in range(100, 100 + draw(st.integers(0, 6)) if slots else 100):
        node, count = draw(st.sampled_from(sorted(slots))), draw(COUNTS)
        if room[node] < count:
            continue
        room[node] -= count
        held = draw(held_by(number, node, count))
        kind = draw(st.sampled_from(["shown", "unseen", "stranger"]))
        free_by_cluster[node] -= 0 if kind == "unseen" else count
        holders += [held] if kind != "stranger" else []
        shown |= {(held.id, node)} if kind == "shown" else set()
    nodes = tuple(
        make_node(name, slots=slots[name], free=free, is_schedulable=draw(IN_SERVICE))
        for name, free in free_by_cluster.items()
    )
    return observe(draw(queues()), holders, nodes=nodes, shown=frozenset(shown))


@st.composite
def queues(draw: st.DrawFn) -> list[Reservation]:
    wanted = draw(st.lists(st.tuples(SIZES, st.sampled_from([Status.PENDING, Status.QUEUED])), max_size=8))
    waiting = [
        request(number, gpus, node_count=nodes, status=status)
        for number, ((gpus, nodes), status) in enumerate(wanted)
    ]
    return draw(st.permutations(waiting))


@st.composite
def held_by(draw: st.DrawFn, number: int, node: NodeName, count: int) -> Reservation:
    status = draw(st.sampled_from([Status.PREPARING, Status.ACTIVE, Status.CANCELLED]))
    expires_at = NOW + draw(st.integers(-2, 5)) * HOUR if status is not Status.PREPARING else None
    return make_reservation(number, status=status, node=node, gpu_count=count, expires_at=expires_at)


every_observation = given(seen=observations())


@QUICK
@every_observation
def test_no_gpu_is_given_twice(seen: Observation) -> None:
    """On every node: what the cluster counts, what it does not show yet and what is given now fit."""
    taken = Counter({node.name: node.slots - node.free_slots for node in seen.nodes})
    for held in seen.holders:
        for node in held.nodes if held.holds_room else ():
            taken[node] += 0 if (held.id, node) in seen.shown else held.gpus_per_node
    given_away = [action.after for action in plan_admission(seen) if isinstance(action, Record)]
    for reservation in given_away:
        for node in reservation.nodes:
            taken[node] += reservation.gpus_per_node
    assert all(taken[node.name] <= node.slots for node in seen.nodes)


@QUICK
@every_observation
def test_places_are_given_only_on_nodes_in_service(seen: Observation) -> None:
    in_service = {node.name for node in seen.nodes if node.is_schedulable}
    assert set("".join(placed(plan_admission(seen)).values())) <= in_service


@QUICK
@every_observation
def test_every_request_gets_exactly_one_of_a_place_and_a_place_in_the_queue(seen: Observation) -> None:
    plan = plan_admission(seen)
    answered = Counter([*placed(plan), *places(plan)])
    assert answered == Counter(waits.id for waits in seen.waiting)


@QUICK
@every_observation
def test_every_record_is_a_legal_move_and_each_request_has_at_most_one(seen: Observation) -> None:
    records = [action for action in plan_admission(seen) if isinstance(action, Record)]
    assert all(is_legal(record.before.state.status, record.after.state.status) for record in records)
    assert len({record.before.id for record in records}) == len(records)


@QUICK
@every_observation
def test_positions_are_one_to_n_in_the_order_of_coming(seen: Observation) -> None:
    told = sorted(places(plan_admission(seen)).values(), key=lambda place: place.position)
    assert [place.position for place in told] == list(range(1, len(told) + 1))
    came = {row.id: (row.spec.created_at, row.id) for row in seen.waiting}
    order = [came[place.reservation_id] for place in told]
    assert order == sorted(order)


@QUICK
@every_observation
def test_whoever_has_a_time_has_a_place_and_the_other_way_round(seen: Observation) -> None:
    for place in places(plan_admission(seen)).values():
        assert (place.estimated_start_at is None) == (place.planned_nodes == ())
        assert place.estimated_start_at is None or place.estimated_start_at > seen.now


@QUICK
@given(seen=observations(), newcomer=SIZES)
def test_a_newcomer_changes_nobody_elses_promise(seen: Observation, newcomer: tuple[int, int]) -> None:
    plan = plan_admission(seen)
    given_away = tuple(
        action.after for action in plan if isinstance(action, Record) and action.after.is_placed
    )
    after = replace(apply_places(seen, plan), holders=(*seen.holders, *given_away))
    gpus, nodes = newcomer
    late = request(500, gpus, node_count=nodes, created_at=NOW)
    moved = places(plan_admission(replace(after, waiting=(*after.waiting, late))))
    assert set(moved) <= {late.id}


@QUICK
@every_observation
def test_plan_does_not_depend_on_the_order_of_what_was_read(seen: Observation) -> None:
    turned = replace(seen, waiting=seen.waiting[::-1], holders=seen.holders[::-1], nodes=seen.nodes[::-1])
    assert plan_admission(turned) == plan_admission(seen)


@QUICK
@every_observation
def test_second_pass_of_the_same_moment_finds_nothing_to_do(seen: Observation) -> None:
    plan = plan_admission(seen)
    given_away = tuple(
        action.after for action in plan if isinstance(action, Record) and action.after.is_placed
    )
    after = replace(apply_places(seen, plan), holders=(*seen.holders, *given_away))
    assert plan_admission(after) == ()


class TestKeptPromises:
    """One node of four, or two; the pass before has promised, and then something happens."""

    def promise(self, seen: Observation, *numbers: int) -> Observation:
        after = apply_places(seen, plan_admission(seen))
        assert {row.id for row in after.waiting} == {make_id(number) for number in numbers}
        return after

    def test_one_starts_on_its_node_at_its_time(self) -> None:
        seen = self.promise(observe([request(1, 4)], [holder(9, 1)]), 1)
        due = replace(seen, now=NOW + HOUR + 5 * MINUTE, holders=(), nodes=(make_node(free=4),))
        assert placed(plan_admission(due)) == {make_id(1): "a"}

    def test_one_whose_time_has_come_waits_a_moment_for_its_room_to_be_cleared(self) -> None:
        seen = self.promise(observe([request(1, 4)], [holder(9, 1)]), 1)
        due = replace(seen, now=NOW + HOUR + 5 * MINUTE)
        plan = plan_admission(due)
        assert not placed(plan)
        place = places(plan)[make_id(1)]
        assert place.estimated_start_at == due.now
        assert words_of(place.detail) == "Its time has come; a is being cleared for it."

    def test_early_release_moves_everybody_up_in_order(self) -> None:
        seen = self.promise(observe([request(1, 4), request(2, 4)], [holder(9, 1)]), 1, 2)
        plan = plan_admission(replace(seen, holders=(), nodes=(make_node(free=4),)))
        assert placed(plan) == {make_id(1): "a"}
        assert places(plan)[make_id(2)].estimated_start_at == NOW + HOUR + 5 * MINUTE

    def test_lost_node_replans_only_who_was_on_it_and_tells_why(self) -> None:
        nodes = (make_node("a", free=0), make_node("b", free=0))
        holders = [
            make_reservation(8, status=Status.ACTIVE, node="a", gpu_count=4, expires_at=NOW + HOUR),
            make_reservation(9, status=Status.ACTIVE, node="b", gpu_count=4, expires_at=NOW + 2 * HOUR),
        ]
        seen = self.promise(observe([request(1, 4), request(2, 4)], holders, nodes=nodes), 1, 2)
        lost = replace(seen, nodes=(replace(nodes[0], is_schedulable=False), nodes[1]))
        plan = plan_admission(lost)
        [record] = [action for action in plan if isinstance(action, Record)]
        assert record.before.id == make_id(1)
        assert (record.event.kind, record.event.message) == (
            EventKind.REPLANNED,
            "Promised for 2030-01-01 13:05 UTC, now 2030-01-01 15:10 UTC: a is out of service.",
        )
        assert make_id(2) not in places(plan)

    def test_extension_that_takes_promised_room_is_told_to_who_was_promised_it(self) -> None:
        seen = self.promise(observe([request(1, 4)], [holder(9, 4)]), 1)
        plan = plan_admission(replace(seen, holders=(holder(9, 4, 3 * HOUR),)))
        [record] = [action for action in plan if isinstance(action, Record)]
        assert record.event.message.endswith("00000009 is on a for longer than was planned.")
        assert places(plan)[make_id(1)].estimated_start_at == NOW + 3 * HOUR + 5 * MINUTE

    def test_one_that_came_back_from_a_placement_goes_before_those_who_came_later(self) -> None:
        seen = self.promise(observe([request(1, 4), request(2, 4)], [holder(9, 1)]), 1, 2)
        back = change(seen.waiting[0], estimated_start_at=None, planned_nodes=())
        free = replace(seen, waiting=(back, seen.waiting[1]), holders=(), nodes=(make_node(free=4),))
        assert placed(plan_admission(free)) == {make_id(1): "a"}

    def test_booking_starts_not_before_its_time_and_others_use_the_room_until_then(self) -> None:
        booked = request(1, 4, start_at=NOW + 3 * HOUR)
        plan = plan_admission(observe([booked, request(2, 4, duration=2.9 * HOUR), request(3, 4)]))
        assert placed(plan) == {make_id(2): "a"}
        first, third = places(plan)[make_id(1)], places(plan)[make_id(3)]
        assert (first.estimated_start_at, first.reason) == (NOW + 3 * HOUR, Reason.BOOKED)
        assert words_of(first.detail) == "Booked for 2030-01-01 15:00 UTC on a."
        assert third.estimated_start_at == NOW + 4 * HOUR + 5 * MINUTE


@pytest.mark.parametrize("minutes", [1, 3])
def test_waiting_request_says_the_same_while_nothing_changes(minutes: int) -> None:
    seen = observe([request(1)], [holder(9, 4)])
    later = replace(seen, now=NOW + minutes * MINUTE)
    assert places(plan_admission(seen)) == places(plan_admission(later))


def test_who_waits_for_a_disk_holds_back_nobody_and_has_no_promised_start() -> None:
    seen = observe([request(1, 4), request(2, 1)], disk_busy=frozenset({make_id(1)}))
    plan = plan_admission(seen)
    placed = [action.after.id for action in plan if isinstance(action, Record) and action.after.node]
    assert placed == [make_id(2)]
    [places] = [action.places for action in plan if isinstance(action, SetQueuePlaces)]
    [place] = places
    assert (place.reservation_id, place.reason, place.position) == (make_id(1), Reason.DISK_BUSY, 1)
    assert place.estimated_start_at is None
