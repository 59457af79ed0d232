"""Forecasts: exact times in cases made by hand, and what holds in every case.

The grace is two minutes, so room that ends at 13:00 is back at 13:02.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from gpudev.domain.eta import Forecast, Forecaster, Opening
from gpudev.domain.lifecycle import Status
from gpudev.domain.names import NodeName, ReservationId
from gpudev.domain.reservation import Reservation
from tests.support.budgets import QUICK
from tests.support.domain_values import HOUR, MINUTE, NOW, POLICY, QUAD, make_id, make_reservation

GRACE = POLICY.grace
A, B, C = NodeName("a"), NodeName("b"), NodeName("c")
FORECASTER = Forecaster(QUAD, NOW, POLICY)


def holder(number: int, node: str, slots: int, ends_in: timedelta) -> Reservation:
    return make_reservation(
        number, status=Status.ACTIVE, node=NodeName(node), gpu_count=slots, expires_at=NOW + ends_in
    )


def on_one(start: datetime, node: NodeName, blocker: ReservationId | None) -> Forecast:
    return Forecast((node,), Opening(start, node, blocker))


def request(number: int, slots: int, duration: timedelta = HOUR, nodes: int = 1) -> Reservation:
    return make_reservation(
        number, status=Status.QUEUED, gpu_count=slots, duration=duration, node_count=nodes
    )


def test_request_that_fits_starts_now_on_the_fullest_node_and_nobody_is_to_blame() -> None:
    assert FORECASTER.forecast({A: 4, B: 2}, [], [request(1, 2)]) == {make_id(1): on_one(NOW, B, None)}


def test_request_starts_when_the_first_holder_that_makes_enough_room_ends() -> None:
    holders = [holder(11, "a", 2, 3 * HOUR), holder(12, "a", 1, HOUR), holder(13, "a", 1, 2 * HOUR)]
    forecasts = FORECASTER.forecast({A: 0}, holders, [request(1, 2)])
    assert forecasts == {make_id(1): on_one(NOW + 2 * HOUR + GRACE, A, make_id(13))}


def test_request_takes_the_node_that_has_room_first() -> None:
    holders = [holder(11, "a", 4, 2 * HOUR), holder(12, "b", 4, HOUR)]
    forecasts = FORECASTER.forecast({A: 0, B: 0}, holders, [request(1, 4)])
    assert forecasts == {make_id(1): on_one(NOW + HOUR + GRACE, B, make_id(12))}


def test_of_two_openings_at_one_time_the_node_that_is_fuller_then_is_taken() -> None:
    """Node a has less room now, and more at the time that counts."""
    holders = [holder(11, "a", 4, HOUR), holder(12, "b", 1, HOUR)]
    forecasts = FORECASTER.forecast({A: 0, B: 1}, holders, [request(1, 2)])
    assert forecasts[make_id(1)] == on_one(NOW + HOUR + GRACE, B, make_id(12))


def test_second_request_starts_when_the_first_gives_its_room_back() -> None:
    forecasts = FORECASTER.forecast({A: 4}, [], [request(1, 4, 3 * HOUR), request(2, 4)])
    assert forecasts[make_id(2)] == on_one(NOW + 3 * HOUR + GRACE, A, make_id(1))


def test_nobody_overtakes_and_who_waits_only_for_its_turn_has_no_blocker() -> None:
    """One GPU is free all the time, but the first in line needs four."""
    forecasts = FORECASTER.forecast({A: 1}, [holder(11, "a", 3, HOUR)], [request(1, 4), request(2, 1)])
    assert forecasts[make_id(1)] == on_one(NOW + HOUR + GRACE, A, make_id(11))
    assert forecasts[make_id(2)] == on_one(NOW + 2 * HOUR + 2 * GRACE, A, make_id(1))


def test_room_that_came_back_before_its_turn_is_not_what_a_request_waits_for() -> None:
    """Node b is free after an hour, but the turn comes with the first request, after two."""
    holders = [holder(11, "a", 4, 2 * HOUR), holder(12, "b", 2, HOUR)]
    forecasts = FORECASTER.forecast({A: 0, B: 0}, holders, [request(1, 4), request(2, 2)])
    assert forecasts[make_id(2)] == on_one(NOW + 2 * HOUR + GRACE, B, None)


def test_three_requests_share_the_room_that_one_holder_leaves() -> None:
    waiting = [request(1, 2, 30 * MINUTE), request(2, 2, HOUR), request(3, 2)]
    forecasts = FORECASTER.forecast({A: 0}, [holder(11, "a", 4, HOUR)], waiting)
    start = NOW + HOUR + GRACE
    assert [forecasts[make_id(number)].start for number in (1, 2, 3)] == [
        start,
        start,
        start + 30 * MINUTE + GRACE,
    ]


def test_ended_holder_that_is_being_cleaned_away_is_the_blocker_for_a_moment() -> None:
    ended = make_reservation(11, status=Status.CANCELLED, gpu_count=4)
    assert FORECASTER.forecast({A: 0}, [ended], [request(1, 4)])[make_id(1)] == on_one(NOW, A, make_id(11))


def test_room_that_others_have_taken_has_no_known_end_and_those_behind_wait_too() -> None:
    forecasts = FORECASTER.forecast({A: 2}, [holder(11, "a", 1, HOUR)], [request(1, 4), request(2, 1)])
    assert forecasts == {}


def test_holder_on_a_node_out_of_service_brings_no_room() -> None:
    assert FORECASTER.forecast({A: 0}, [holder(11, "b", 4, HOUR)], [request(1, 1)]) == {}


class TestGangs:
    def test_gang_starts_now_on_nodes_that_are_free_as_a_whole(self) -> None:
        forecasts = FORECASTER.forecast({A: 4, B: 3, C: 4}, [], [request(1, 8, nodes=2)])
        assert forecasts == {make_id(1): Forecast((A, C), Opening(NOW, A, None))}

    def test_gang_starts_when_the_last_of_its_nodes_is_free_and_that_one_is_named(self) -> None:
        holders = [holder(11, "a", 1, 2 * HOUR), holder(12, "b", 4, HOUR), holder(13, "c", 1, 3 * HOUR)]
        forecasts = FORECASTER.forecast({A: 3, B: 0, C: 3}, holders, [request(1, 8, nodes=2)])
        start = NOW + 2 * HOUR + GRACE
        assert forecasts == {make_id(1): Forecast((A, B), Opening(start, A, make_id(11)))}

    def test_gang_gives_all_its_nodes_back_at_once(self) -> None:
        waiting = [request(1, 8, 3 * HOUR, nodes=2), request(2, 8, nodes=2)]
        forecasts = FORECASTER.forecast({A: 4, B: 4}, [], waiting)
        assert forecasts[make_id(2)].start == NOW + 3 * HOUR + GRACE
        assert forecasts[make_id(2)].last.blocker == make_id(1)

    def test_gang_that_holds_nodes_is_in_the_way_on_each_of_them(self) -> None:
        gang = make_reservation(11, status=Status.ACTIVE, nodes="ab", gpu_count=8, expires_at=NOW + HOUR)
        forecasts = FORECASTER.forecast({A: 0, B: 0}, [gang], [request(1, 4), request(2, 4), request(3, 4)])
        starts = [forecasts[make_id(number)].start - NOW for number in (1, 2, 3)]
        assert starts == [HOUR + GRACE, HOUR + GRACE, 2 * (HOUR + GRACE)]

    def test_gang_has_no_start_where_there_are_too_few_nodes(self) -> None:
        assert FORECASTER.forecast({A: 4}, [], [request(1, 8, nodes=2)]) == {}


@dataclass(frozen=True)
class Scene:
    slots: dict[NodeName, int]
    holders: tuple[Reservation, ...]
    waiting: tuple[Reservation, ...]

    @property
    def free(self) -> dict[NodeName, int]:
        return {
            name: slots - sum(held.gpu_count for held in self.holders if held.node == name)
            for name, slots in self.slots.items()
        }


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """Nodes of 4 slots, filled at most up to the brim, and a queue."""
    slots = {NodeName(name): 4 for name in "abc"[: draw(st.integers(1, 3))]}
    room = dict(slots)
    holders: list[Reservation] = []
    for number in range(100, 100 + draw(st.integers(0, 6))):
        node = draw(st.sampled_from(sorted(slots)))
        count = draw(st.sampled_from([1, 2, 4]))
        if room[node] >= count:
            room[node] -= count
            holders.append(holder(number, node, count, draw(st.integers(-1, 5)) * HOUR))
    sizes = st.sampled_from(
        [(1, 1), (2, 1), (4, 1), *((4 * nodes, nodes) for nodes in range(2, len(slots) + 1))]
    )
    asked = draw(st.lists(st.tuples(sizes, st.integers(1, 5)), max_size=8))
    waiting = tuple(
        request(number, gpus, hours * HOUR, nodes) for number, ((gpus, nodes), hours) in enumerate(asked)
    )
    return Scene(slots, tuple(holders), waiting)


@QUICK
@given(scene=scenes())
def test_every_request_that_fits_has_a_start_and_none_before_an_earlier_one(scene: Scene) -> None:
    forecasts = FORECASTER.forecast(scene.free, scene.holders, scene.waiting)
    starts = [forecasts[waits.id].start for waits in scene.waiting]
    assert starts == sorted(starts)
    assert all(start >= NOW for start in starts)


@QUICK
@given(scene=scenes())
def test_forecast_never_gives_more_than_a_node_has(scene: Scene) -> None:
    forecasts = FORECASTER.forecast(scene.free, scene.holders, scene.waiting)
    for node, slots in scene.slots.items():
        for moment in (forecast.start for forecast in forecasts.values()):
            assert held_by_holders(scene, node, moment) + given_to(forecasts, scene, node, moment) <= slots


@QUICK
@given(scene=scenes())
def test_named_blocker_really_gives_back_room_on_that_node_at_that_time(scene: Scene) -> None:
    forecasts = FORECASTER.forecast(scene.free, scene.holders, scene.waiting)
    ends = {
        held.id: (held.nodes, max(NOW, held.expires_at + GRACE)) for held in scene.holders if held.expires_at
    }
    for waits in scene.waiting:
        mine = forecasts[waits.id]
        if mine.last.blocker:
            nodes, ended = ends[mine.last.blocker]
            assert ended == mine.start
            assert mine.last.node in nodes
            assert mine.last.node in mine.nodes
        ends[waits.id] = (mine.nodes, mine.start + waits.duration + GRACE)


@QUICK
@given(scene=scenes())
def test_each_request_gets_as_many_nodes_as_it_wants_and_none_twice(scene: Scene) -> None:
    forecasts = FORECASTER.forecast(scene.free, scene.holders, scene.waiting)
    for waits in scene.waiting:
        assert len(set(forecasts[waits.id].nodes)) == len(forecasts[waits.id].nodes) == waits.node_count


def held_by_holders(scene: Scene, node: NodeName, moment: datetime) -> int:
    return sum(
        held.gpu_count
        for held in scene.holders
        if held.node == node and held.expires_at and max(NOW, held.expires_at + GRACE) > moment
    )


def given_to(forecasts: dict[ReservationId, Forecast], scene: Scene, node: NodeName, moment: datetime) -> int:
    return sum(
        waits.gpus_per_node
        for waits in scene.waiting
        if node in (mine := forecasts[waits.id]).nodes
        and mine.start <= moment < mine.start + waits.duration + GRACE
    )
