"""The planners at work in a model of the world, while everything that can go wrong does.

Whatever happens, nothing is promised twice; and once the trouble is over, repeated turns come to rest,
every request that fits gets its server, everything ends in time and nothing is left behind.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from typing_extensions import override

from gpudev.domain.names import NodeName, ReservationId
from gpudev.domain.plans.turn import ReservationAction
from gpudev.domain.policy import Shares, SharingPolicy
from gpudev.domain.quota import Quota, QuotaRule, Quotas
from gpudev.domain.reservation import Reservation
from gpudev.texts.vocabulary import Reason, Status
from tests.support.budgets import QUICK, THOROUGH, choose_depth
from tests.support.domain_values import HOUR, MINUTE, QUAD
from tests.support.model_world import Fate, World

A, B = NodeName("a"), NodeName("b")
SIZES = st.sampled_from([(1, 1), (1, 1), (2, 1), (4, 1), (8, 1), (8, 2), (12, 3)])
"""GPUs and nodes. No node has eight slots, and there are two nodes: some can never be granted."""
SURVIVES = st.sampled_from([None, 0, 1, 2])
"""How many actions of a plan are carried out before the process dies; None: all."""
ANY = st.integers(0, 1000)


class Trouble(RuleBasedStateMachine):
    """Crashes, refusals, deaths and a view that lags; every turn reads the cluster itself."""

    reads_fresh = True

    def __init__(self) -> None:
        super().__init__()
        self.world = World(QUAD, {A: 4, B: 4}, reads_fresh=self.reads_fresh)

    @initialize(size=SIZES)
    def start_with_a_request(self, size: tuple[int, int]) -> None:
        self.submit(size, 1)

    @rule(size=SIZES, hours=st.integers(1, 4))
    def submit(self, size: tuple[int, int], hours: int) -> None:
        gpu_count, node_count = size
        self.world.submit(gpu_count, hours * HOUR, node_count)

    @rule(which=ANY)
    def cancel(self, which: int) -> None:
        self.world.cancel(self.pick(which))

    @rule(minutes=st.sampled_from([1, 20, 61, 130]))
    def advance(self, minutes: int) -> None:
        self.world.advance(minutes * MINUTE)

    @rule()
    def refresh_view(self) -> None:
        self.world.refresh_view()

    @rule(which=ANY, survives=SURVIVES)
    def turn(self, which: int, survives: int | None) -> None:
        self.world.execute(self.world.plan_turn(self.pick(which)), survives)

    @rule(survives=SURVIVES)
    def admit(self, survives: int | None) -> None:
        self.world.execute(self.world.plan_admission(), survives)

    @rule()
    def everybody_takes_a_turn(self) -> None:
        self.world.execute(self.world.plan_admission())
        for one in self.world.rows:
            self.world.execute(self.world.plan_turn(one))

    @precondition(lambda self: self.world.servers)
    @rule(which=ANY, fate=st.sampled_from(Fate), member=st.integers(0, 2))
    def something_befalls_a_server(self, which: int, fate: Fate, member: int) -> None:
        servers = sorted(self.world.servers)
        self.world.befall(servers[which % len(servers)], fate, member)

    @rule()
    def next_server_is_refused(self) -> None:
        self.world.refuses_next = True

    @rule()
    def next_creation_dies_half_way(self) -> None:
        self.world.next_creation_dies = True

    @rule(node=st.sampled_from([A, B]))
    def node_leaves_or_joins(self, node: NodeName) -> None:
        self.world.out_of_service ^= {node}

    @invariant()
    def nothing_is_promised_twice(self) -> None:
        assert self.world.list_overbooked_nodes() == []

    @invariant()
    def no_promise_is_broken_for_want_of_room(self) -> None:
        assert self.world.turned_away == []

    @override
    def teardown(self) -> None:
        waited = {one for one, row in self.world.rows.items() if row.is_waiting and self.is_possible(row)}
        waited -= {one for one, operations in self.world.operations.items() if operations}
        self.end_the_trouble()
        self.world.settle()
        assert set(self.actions_left()) == set()
        self.world.run_to_the_end()
        self.check_that_everything_ended()
        ends = {self.world.rows[one].state.reason for one in waited}
        assert ends <= {Reason.TIME_IS_UP}, "a request that waited did not get its time"

    def end_the_trouble(self) -> None:
        self.world.out_of_service.clear()
        self.world.refuses_next = False
        self.world.next_creation_dies = False
        self.world.refresh_view()

    def actions_left(self) -> list[ReservationAction]:
        """What the planners would still do at this moment; to look again later is nothing."""
        return [
            action
            for one in self.world.rows
            for action in self.world.plan_turn(one)
            if type(action).__name__ != "LookAgain"
        ]

    def check_that_everything_ended(self) -> None:
        assert self.world.servers == {}
        for row in self.world.rows.values():
            if self.is_possible(row) or row.is_ended:
                assert row.is_cleaned, row
            else:
                assert (row.state.status, row.state.reason) == (Status.QUEUED, Reason.NO_NODES), row

    def is_possible(self, row: Reservation) -> bool:
        fitting = [slots for slots in self.world.slots.values() if slots >= row.gpus_per_node]
        return len(fitting) >= row.spec.node_count

    def pick(self, which: int) -> ReservationId:
        rows = sorted(self.world.rows)
        return rows[which % len(rows)]


class MoreTrouble(Trouble):
    """Also: turns act on a view that lags, and whole plans are carried out long after they were made."""

    reads_fresh = False

    def __init__(self) -> None:
        super().__init__()
        self.held_back: list[tuple[ReservationAction, ...]] = []

    @rule(which=ANY)
    def turn_is_held_back(self, which: int) -> None:
        self.held_back.append(self.world.plan_turn(self.pick(which)))

    @precondition(lambda self: self.held_back)
    @rule(skips=st.integers(0, 1))
    def turn_comes_late(self, skips: int) -> None:
        """Even from its second action on: the first one, a write, was made in time."""
        self.world.execute(self.held_back.pop(0)[skips:])

    @override
    def no_promise_is_broken_for_want_of_room(self) -> None:
        """It may be: a late server has taken room that the view does not show. The cluster refuses."""

    @override
    def end_the_trouble(self) -> None:
        for plan in self.held_back:
            self.world.execute(plan)
        super().end_the_trouble()


class Calm(RuleBasedStateMachine):
    """Nothing goes wrong, and people come, leave and let time pass: then every promise holds."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(QUAD, {A: 4, B: 4})
        self.promises: dict[ReservationId, datetime] = {}

    @rule(size=SIZES, hours=st.sampled_from([0.25, 0.5, 1, 1.1, 2]), username=st.sampled_from(["ada", "bob"]))
    def submit(self, size: tuple[int, int], hours: float, username: str) -> None:
        before = self.list_promised()
        gpu_count, node_count = size
        self.world.submit(gpu_count, hours * HOUR, node_count, username)
        self.world.execute(self.world.plan_admission())
        after = self.list_promised()
        assert {one: after.get(one) for one in before} == before, "who came moved somebody"
        self.world.settle()

    @precondition(lambda self: self.world.rows)
    @rule(which=ANY)
    def cancel(self, which: int) -> None:
        rows = sorted(self.world.rows)
        self.world.cancel(rows[which % len(rows)])
        self.world.settle()

    @rule(minutes=st.sampled_from([1, 4, 5, 17, 60]))
    def pass_time(self, minutes: int) -> None:
        self.world.pass_time(minutes * MINUTE)

    def list_promised(self) -> dict[ReservationId, tuple[datetime | None, tuple[NodeName, ...]]]:
        rows = self.world.rows.values()
        return {
            row.id: (row.forecast.estimated_start_at, row.forecast.planned_nodes)
            for row in rows
            if row.is_waiting
        }

    @invariant()
    def promises_hold(self) -> None:
        for row in self.world.rows.values():
            start = row.forecast.estimated_start_at if row.is_waiting else row.state.launched_at
            if start is None:
                continue
            assert start <= self.promises.setdefault(row.id, start), row
            self.promises[row.id] = min(start, self.promises[row.id])

    @invariant()
    def nobody_waits_past_its_promise(self) -> None:
        late = [
            row
            for row in self.world.rows.values()
            if row.is_waiting and (row.forecast.estimated_start_at or self.world.now) < self.world.now
        ]
        assert late == []

    @invariant()
    def nothing_is_promised_twice(self) -> None:
        assert self.world.list_overbooked_nodes() == []


class CalmWithQuotas(Calm):
    """Every user may have one whole node: that holds at every moment, and promises do as well."""

    def __init__(self) -> None:
        super().__init__()
        self.world.shares = Shares(SharingPolicy(Quotas((QuotaRule("*", "*", Quota(gpus=4)),))))

    @invariant()
    def nobody_has_more_than_the_quota(self) -> None:
        held: Counter[str] = Counter()
        for row in self.world.rows.values():
            held[row.spec.username] += row.spec.gpu_count if row.holds_room else 0
        assert all(slots <= 4 for slots in held.values())


MACHINES = pytest.mark.parametrize(
    "machine", [Trouble, MoreTrouble, Calm, CalmWithQuotas], ids=lambda machine: machine.__name__
)


@MACHINES
def test_planners_survive_trouble(machine: type[RuleBasedStateMachine]) -> None:
    run_state_machine_as_test(machine, settings=settings(QUICK, max_examples=100, stateful_step_count=30))


@pytest.mark.long
@MACHINES
def test_planners_survive_much_trouble(machine: type[RuleBasedStateMachine]) -> None:
    count = choose_depth(long=100, soak=1500)
    run_state_machine_as_test(
        machine, settings=settings(THOROUGH, max_examples=count, stateful_step_count=60)
    )
