"""A busy day on a small simulated fleet, in seconds: what was promised is what happens.

The controllers and the database are the real ones. Sixty requests of all sizes and lengths come, some are
cancelled, some extended; whenever somebody is told why they wait, the blocker that is named is looked at.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from typing_extensions import override

from gpudev.app.identity.authentication import Caller
from gpudev.app.reservations.operations import ExtensionRequest, OperationRequests
from gpudev.app.reservations.preview import Preview
from gpudev.domain.catalogue import DEFAULT_CATALOGUE
from gpudev.domain.errors import Conflict, Invalid
from gpudev.domain.expiry import TimePolicy, count_steps, room_is_free_at
from gpudev.domain.names import NodeName, ReservationId
from gpudev.domain.reservation import Reservation
from gpudev.texts.vocabulary import EventKind, Reason, Status
from tests.support.reservations import NOON, make_reservation, open_test_stores, submit
from tests.support.simulated_cluster import SimulatedCluster
from tests.support.simulation import Simulation
from tests.support.words import words_of

pytestmark = [pytest.mark.anyio, pytest.mark.long]

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
POLICY = TimePolicy()
GRID = POLICY.grid
COUNT = 60
FLEET = {NodeName(f"h100-{number}"): 8 for number in range(3)}
BLOCKED = re.compile(r": (\S+) has room at .+ UTC, when ([0-9a-f]{8})(, which starts before,)? ends\.$")


@dataclass
class BusyDay(Simulation):
    """After every pass of admission, those who were told something are looked at."""

    promised: dict[ReservationId, datetime] = field(default_factory=dict)
    told: Counter[Reason] = field(default_factory=Counter)
    last_told: dict[ReservationId, datetime] = field(default_factory=dict)

    @override
    async def _admit(self) -> None:
        will_look = self.cluster.has_room_changed
        await super()._admit()
        if will_look:
            async with self.stores.admissions.lock("h100") as transaction:
                rows = await transaction.read()
            for row in rows:
                if row.state.status is Status.QUEUED and row.forecast.last_queue_update == self.clock.time:
                    self._check_promise(row)
                    self._check_reason(row, rows)

    def _check_promise(self, row: Reservation) -> None:
        assert row.forecast.estimated_start_at is not None
        self.promised.setdefault(row.id, row.forecast.estimated_start_at)
        forecast = row.forecast
        assert forecast.estimated_start_at <= self.last_told.get(row.id, forecast.estimated_start_at), (
            "later than before"
        )
        self.last_told[row.id] = row.forecast.estimated_start_at

    def _check_reason(self, row: Reservation, rows: tuple[Reservation, ...]) -> None:
        assert row.state.reason is not None
        self.told[row.state.reason] += 1
        found = BLOCKED.search(words_of(row.state.detail))
        if found is None:
            return
        node, short, _ = found.groups()
        assert node in row.forecast.planned_nodes
        start = GRID.step_of(row.forecast.estimated_start_at or self.clock.time)
        [blocker] = [one for one in rows if one.id8 == short]
        assert node in (blocker.nodes or blocker.forecast.planned_nodes)
        # One that was placed in this very pass has what the plan kept for it, which may be a step more.
        assert start - self._end_of(blocker) in (
            {0, 1} if blocker.state.placed_at == self.clock.time else {0}
        )
        last = self._end_of(blocker) - 1
        taken = sum(one.gpus_per_node for one in rows if one is not row and self._is_on(one, node, last))
        assert taken + row.gpus_per_node > FLEET[NodeName(node)], "there was room before"

    def _is_on(self, one: Reservation, node: str, step: int) -> bool:
        begins = 0 if one.nodes else GRID.step_of(one.forecast.estimated_start_at or self.clock.time)
        return node in (one.nodes or one.forecast.planned_nodes) and begins <= step < max(
            self._end_of(one), begins + 1
        )

    def _end_of(self, one: Reservation) -> int:
        if one.nodes:
            return GRID.step_after(room_is_free_at(one, self.clock.time, POLICY))
        assert one.forecast.estimated_start_at is not None
        return GRID.step_of(one.forecast.estimated_start_at) + count_steps(one.spec.duration, POLICY)


@dataclass
class People:
    day: BusyDay
    caller: Caller
    chance: random.Random
    asked: list[ReservationId] = field(default_factory=list)
    granted: int = 0
    refused: int = 0

    def come(self) -> None:
        for number in range(COUNT):
            gpus, nodes = self.chance.choice([(1, 1), (2, 1), (4, 1), (8, 1), (8, 1), (16, 2)])
            hours = self.chance.choice([0.5, 1, 2, 2.5, 4])
            at = NOON + self.chance.randrange(12 * 60) * MINUTE
            self._plan(number, at, gpu_count=gpus, node_count=nodes, duration=hours * HOUR)
        for step in range(36 * 12):
            self.day.at(NOON + step * GRID.width, self._look)

    def _plan(self, number: int, at: datetime, **changes: object) -> None:
        asked = make_reservation(self.caller, gpu_type="h100", created_at=at, **changes)
        self.asked.append(asked.id)

        async def submit_it() -> ReservationId:
            await submit(self.day.stores, asked)
            self.day.cluster.has_room_changed = True
            return asked.id

        self.day.at(at, submit_it)
        if number % 6 == 0:
            self.day.at(at + self.chance.randrange(10, 200) * MINUTE, lambda: self._cancel(asked.id))

    def decide(self, one: ReservationId) -> None:
        """Servers are there after some seconds; some of their users soon want more time."""
        now = self.day.clock.time

        async def become_ready() -> ReservationId:
            self.day.cluster.become_ready(one)
            return one

        self.day.at(now + timedelta(seconds=self.chance.randint(1, 40)), become_ready)
        if self.chance.random() < 0.4:
            self.day.at(now + 20 * MINUTE, lambda: self._extend(one))

    async def _look(self) -> None:
        self.day.cluster.has_room_changed = True

    @property
    def _operations(self) -> OperationRequests:
        stores, clock = self.day.stores, self.day.clock
        preview = Preview(stores.admissions, DEFAULT_CATALOGUE, POLICY, clock)
        return OperationRequests(stores.operations, clock, preview, stores.nodes)

    async def _cancel(self, one: ReservationId) -> ReservationId:
        row = await self.day.stores.reservations.get(one)
        if row.is_live:
            await self._operations.cancel(self.caller, row)
        return one

    async def _extend(self, one: ReservationId) -> ReservationId:
        row = await self.day.stores.reservations.get(one)
        try:
            await self._operations.extend(
                self.caller, row, ExtensionRequest(hours=self.chance.choice([0.5, 1, 3]))
            )
        except (Conflict, Invalid) as error:
            self.refused += error.code == "promised_to_others"
        else:
            self.granted += 1
        return one


async def test_starts_are_those_promised_and_reasons_name_the_real_blocker(database: str) -> None:
    chance = random.Random(11)
    async with open_test_stores(database) as stores:
        cluster = SimulatedCluster("h100", dict(FLEET))
        day = BusyDay(stores, cluster, POLICY, chance, 0, (timedelta(),), ("h100",))
        user = await stores.users.upsert("ada")
        people = People(day, Caller(user.user_id, user.username, user.is_active), chance)
        day.on_server = people.decide
        people.come()
        await day.run_until(NOON + 96 * HOUR)

        rows = [await stores.reservations.get(one) for one in people.asked]
        events = [
            stored.event for one in people.asked for stored in await stores.reservations.list_events(one, 0)
        ]
    assert cluster.servers == {}
    assert {row.state.reason for row in rows} == {Reason.TIME_IS_UP, Reason.CANCELLED_BY_USER}
    assert [event for event in events if event.kind is EventKind.REPLANNED] == []
    starts = {row.id: row.state.placed_at for row in rows if row.state.placed_at and row.id in day.promised}
    late = {one: at for one, at in starts.items() if at >= day.promised[one] + GRID.width}
    assert late == {}
    assert len(starts) > COUNT / 3, "many had to wait"
    assert {Reason.WAITING_FOR_CAPACITY, Reason.WAITING_IN_LINE} <= set(day.told)
    assert people.granted
    assert people.refused
