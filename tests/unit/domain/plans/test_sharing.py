"""Quotas, fair share, maintenance and node labels in the plan of a GPU type, and the words for them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest

from gpudev.domain.capacity import Node
from gpudev.domain.names import NodeName, ReservationId, UserId
from gpudev.domain.plans.admission import Observation, plan_admission, predict_availability, situation_of
from gpudev.domain.plans.turn import AdmissionAction, Record, SetQueuePlaces
from gpudev.domain.policy import FairShare, Maintenance, Shares, SharingPolicy
from gpudev.domain.preview import Foresight
from gpudev.domain.queue import QueuePlace
from gpudev.domain.quota import DEFAULT_QUOTA, Quota, QuotaRule, Quotas, find_long_limit
from gpudev.domain.reservation import Reservation
from gpudev.texts.vocabulary import Reason, Status
from tests.support.domain_values import (
    HOUR,
    NOW,
    POLICY,
    QUAD,
    make_id,
    make_node,
    make_reservation,
    make_spec,
)
from tests.support.words import words_of

A, B = NodeName("a"), NodeName("b")
TWO_GPUS = SharingPolicy(Quotas((QuotaRule("*", "*", Quota(gpus=2)),)))
HALF = SharingPolicy(Quotas((QuotaRule("*", "*", Quota(long_share=0.5)),)))
DAY = timedelta(days=1)


def observe(
    waiting: Iterable[Reservation],
    shares: Shares,
    holders: tuple[Reservation, ...] = (),
    nodes: tuple[Node, ...] = (make_node("a"), make_node("b")),
) -> Observation:
    return Observation(
        gpu_type=QUAD,
        waiting=tuple(waiting),
        holders=holders,
        nodes=nodes,
        shown=frozenset(),
        policy=POLICY,
        now=NOW,
        shares=shares,
    )


def request(number: int, **changes: Any) -> Reservation:
    return make_reservation(number, **changes)


def started(plan: tuple[AdmissionAction, ...]) -> dict[ReservationId, tuple[NodeName, ...]]:
    records = [action for action in plan if isinstance(action, Record)]
    return {one.before.id: one.after.nodes for one in records if one.after.state.status is Status.PREPARING}


def places(plan: tuple[AdmissionAction, ...]) -> dict[ReservationId, QueuePlace]:
    lists = [action.places for action in plan if isinstance(action, SetQueuePlaces)]
    return {place.reservation_id: place for some in lists for place in some}


class TestLongShare:
    """Half of eight GPUs may be held for longer than four hours."""

    def test_user_with_the_share_waits_for_their_own_and_is_told_so(self) -> None:
        mine = make_reservation(1, status=Status.ACTIVE, gpu_count=4, expires_at=NOW + DAY)
        waiting = [
            request(2, duration=5 * HOUR),
            request(3, duration=4 * HOUR),
            request(4, duration=5 * HOUR, username="bob"),
        ]
        plan = plan_admission(observe(waiting, Shares(HALF), (mine,)))
        assert set(started(plan)) == {make_id(3), make_id(4)}, "what is short, and what is another user's"
        place = places(plan)[make_id(2)]
        assert place.reason is Reason.WAITING_FOR_QUOTA
        assert words_of(place.detail) == (
            "ada may hold 4 quad GPUs for longer than 4 hours: there is room in that at "
            "2030-01-02 07:55 UTC, when 00000001 has 4 hours left."
        )

    def test_promise_stands_when_the_share_shrinks_with_the_fleet(self) -> None:
        mine = make_reservation(1, status=Status.ACTIVE, gpu_count=4, expires_at=NOW + DAY, nodes=("a",))
        promised = request(
            2,
            status=Status.QUEUED,
            gpu_count=4,
            duration=DAY,
            estimated_start_at=NOW + HOUR,
            planned_nodes=(B,),
        )
        plan = plan_admission(observe([promised], Shares(HALF), (mine,)))
        assert [action for action in plan if isinstance(action, Record)] == []
        moved = places(plan).get(make_id(2))
        assert moved is None or moved.estimated_start_at == NOW + HOUR

    @pytest.mark.parametrize(
        "quota, nodes, limit",
        [
            pytest.param(DEFAULT_QUOTA, 12, None, id="by default not on few nodes"),
            pytest.param(DEFAULT_QUOTA, 13, 8, id="by default from 13 nodes on"),
            pytest.param(Quota(long_share=0.1), 4, 8, id="as the policy says, and at least a node"),
            pytest.param(Quota(long_share=0.5), 0, None, id="no nodes"),
        ],
    )
    def test_share_in_gpus(self, quota: Quota, nodes: int, limit: int | None) -> None:
        assert find_long_limit(quota, 8 * nodes, nodes) == limit

    def test_preview_tells_of_it(self) -> None:
        mine = make_reservation(1, status=Status.ACTIVE, gpu_count=4, expires_at=NOW + DAY)
        foresight = Foresight(situation_of(observe([], Shares(HALF), (mine,))), ())
        foreseen = foresight.foresee(make_spec("quad", 1, 5 * HOUR, username="ada"))
        assert (foreseen.starts_now, foreseen.reason) == (False, Reason.WAITING_FOR_QUOTA)
        assert foresight.foresee(make_spec("quad", 1, 4 * HOUR, username="ada")).starts_now


class TestQuota:
    def test_user_at_the_quota_waits_for_their_own_and_is_told_so(self) -> None:
        mine = make_reservation(1, status=Status.ACTIVE, gpu_count=2)
        plan = plan_admission(observe([request(2), request(3, username="bob")], Shares(TWO_GPUS), (mine,)))
        assert list(started(plan)) == [make_id(3)]
        place = places(plan)[make_id(2)]
        assert place.reason is Reason.WAITING_FOR_QUOTA
        assert words_of(place.detail) == (
            "The quota of ada is 2 quad GPUs at once: there is room in it at 2030-01-01 13:05 UTC, "
            "when 00000001 ends."
        )
        assert place.planned_nodes == (A,)

    def test_more_than_the_quota_is_promised_nothing_and_holds_back_nobody(self) -> None:
        plan = plan_admission(observe([request(1, gpu_count=4), request(2)], Shares(TWO_GPUS)))
        assert list(started(plan)) == [make_id(2)]
        place = places(plan)[make_id(1)]
        assert (place.reason, place.estimated_start_at) == (Reason.WAITING_FOR_QUOTA, None)

    def test_lowered_quota_moves_a_promise_and_its_owner_is_told_why(self) -> None:
        promised = request(
            2, status=Status.QUEUED, gpu_count=2, estimated_start_at=NOW + HOUR, planned_nodes=(B,)
        )
        mine = make_reservation(1, status=Status.ACTIVE, gpu_count=2, expires_at=NOW + 2 * HOUR)
        plan = plan_admission(observe([promised], Shares(TWO_GPUS), (mine,)))
        [told] = [action for action in plan if isinstance(action, Record)]
        assert "the quota is 2 GPUs at once" in told.event.message

    def test_due_promise_waits_until_the_own_one_before_it_is_cleared(self) -> None:
        due = request(2, status=Status.QUEUED, gpu_count=2, estimated_start_at=NOW, planned_nodes=(B,))
        ending = make_reservation(1, status=Status.EXPIRED, gpu_count=2)
        plan = plan_admission(observe([due], Shares(TWO_GPUS), (ending,)))
        assert started(plan) == {}
        assert places(plan)[make_id(2)].estimated_start_at == NOW, "the promise stands"
        assert started(plan_admission(observe([due], Shares(TWO_GPUS)))) == {make_id(2): (B,)}

    def test_preview_and_extensions_know_it(self) -> None:
        mine = make_reservation(1, status=Status.ACTIVE, gpu_count=2)
        next_one = request(
            2, status=Status.QUEUED, gpu_count=2, estimated_start_at=NOW + 2 * HOUR, planned_nodes=(B,)
        )
        situation = situation_of(observe([next_one], Shares(TWO_GPUS), (mine,)))
        foresight = Foresight(situation, ())
        foreseen = foresight.foresee(make_spec("quad", 2, HOUR, username="ada"))
        assert (foreseen.starts_now, foreseen.reason) == (False, Reason.WAITING_FOR_QUOTA)
        assert foresight.foresee(make_spec("quad", 2, HOUR, username="bob")).starts_now
        stays = Foresight(situation, (next_one,)).stays_until(mine)
        assert stays == NOW + 65 * timedelta(minutes=1) - POLICY.grace


class TestFairShare:
    POLICY_OF_SHARES = SharingPolicy(fair_share=FairShare(DAY))

    def test_who_has_used_less_is_offered_room_first(self) -> None:
        both = [request(1, gpu_count=4), request(2, gpu_count=4, user_id=UserId(2), username="bob")]
        one_node = (make_node("a"),)
        alike = plan_admission(observe(both, Shares(self.POLICY_OF_SHARES), nodes=one_node))
        assert list(started(alike)) == [make_id(1)]
        shares = Shares(self.POLICY_OF_SHARES, {UserId(1): 10.0, UserId(2): 1.0})
        assert list(started(plan_admission(observe(both, shares, nodes=one_node)))) == [make_id(2)]

    def test_promise_is_not_taken_from_who_has_used_more(self) -> None:
        promised = request(
            1, status=Status.QUEUED, gpu_count=4, estimated_start_at=NOW + HOUR, planned_nodes=(A,)
        )
        holder = make_reservation(9, status=Status.ACTIVE, gpu_count=4, expires_at=NOW + HOUR - POLICY.grace)
        newcomer = request(2, gpu_count=4, user_id=UserId(2), username="bob")
        shares = Shares(self.POLICY_OF_SHARES, {UserId(1): 100.0})
        seen = observe([promised, newcomer], shares, (holder,), (make_node("a"),))
        told = places(plan_admission(seen))
        assert told[make_id(1)].estimated_start_at == NOW + HOUR
        later = told[make_id(2)].estimated_start_at
        assert later is not None
        assert later > NOW + HOUR


class TestMaintenance:
    WINDOW = Maintenance(NOW + HOUR, NOW + 3 * HOUR, frozenset({A}))

    def test_nothing_is_promised_that_would_still_run_then(self) -> None:
        shares = Shares(SharingPolicy(maintenance=(self.WINDOW,)))
        long, short = request(1, gpu_count=4, duration=2 * HOUR), request(2, duration=HOUR / 2)
        plan = plan_admission(observe([long, short], shares, nodes=(make_node("a"),)))
        assert started(plan) == {make_id(2): (A,)}
        place = places(plan)[make_id(1)]
        assert place.estimated_start_at == NOW + 3 * HOUR
        assert words_of(place.detail) == (
            "4 quad GPUs on one node: a is back from its maintenance at 2030-01-01 15:00 UTC."
        )

    def test_promise_into_it_is_made_anew_and_told(self) -> None:
        promised = request(
            1, status=Status.QUEUED, gpu_count=4, estimated_start_at=NOW + HOUR, planned_nodes=(A,)
        )
        shares = Shares(SharingPolicy(maintenance=(self.WINDOW,)))
        holder = make_reservation(9, status=Status.ACTIVE, gpu_count=4, expires_at=NOW + HOUR - POLICY.grace)
        plan = plan_admission(observe([promised], shares, (holder,), (make_node("a"),)))
        [told] = [action for action in plan if isinstance(action, Record)]
        assert "a is out for maintenance from 2030-01-01 13:00 UTC" in told.event.message
        assert places(plan)[make_id(1)].estimated_start_at == NOW + 3 * HOUR

    def test_node_has_nothing_to_give_meanwhile_and_others_have(self) -> None:
        now_out = Maintenance(NOW - HOUR, NOW + HOUR, gpu_type="quad")
        seen = observe([request(1)], Shares(SharingPolicy(maintenance=(now_out,))))
        plan = plan_admission(seen)
        assert started(plan) == {}
        assert predict_availability(seen, plan).available == 0
        over = Maintenance(NOW - 2 * HOUR, NOW - HOUR, gpu_type="quad")
        seen = observe([request(1)], Shares(SharingPolicy(maintenance=(over,))))
        assert list(started(plan_admission(seen))) == [make_id(1)]


class TestLabels:
    POLICY_OF_LABELS = Shares(SharingPolicy(node_labels={"nsight": frozenset({"true"})}))

    def test_request_goes_to_a_node_that_has_them(self) -> None:
        nodes = (make_node("a"), make_node("b", labels={"nsight": "true", "secret": "x"}))
        seen = observe([request(1, node_labels={"nsight": "true"})], self.POLICY_OF_LABELS, nodes=nodes)
        assert started(plan_admission(seen)) == {make_id(1): (B,)}
        assert [room.labels for room in situation_of(seen).rooms] == [{}, {"nsight": "true"}]

    def test_where_no_node_has_them_it_waits_and_holds_back_nobody(self) -> None:
        seen = observe([request(1, node_labels={"nsight": "true"}), request(2)], self.POLICY_OF_LABELS)
        plan = plan_admission(seen)
        assert list(started(plan)) == [make_id(2)]
        assert places(plan)[make_id(1)].reason is Reason.NO_NODES

    def test_it_waits_for_such_a_node_though_others_are_free(self) -> None:
        nodes = (make_node("a"), make_node("b", labels={"nsight": "true"}))
        holder = make_reservation(9, status=Status.ACTIVE, gpu_count=4, node="b")
        seen = observe([request(1, node_labels={"nsight": "true"})], self.POLICY_OF_LABELS, (holder,), nodes)
        place = places(plan_admission(seen))[make_id(1)]
        assert place.planned_nodes == (B,)
        assert words_of(place.detail).startswith("1 quad GPU on one node with nsight=true: b has room at")
