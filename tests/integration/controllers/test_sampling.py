"""From what a cluster measures to the end of a reservation that nobody uses, on a real database."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from gpudev.app.controllers.chores import Sampler
from gpudev.app.controllers.reservations import Rules
from gpudev.bootstrap.foundation import Stores
from gpudev.domain.catalogue import DEFAULT_CATALOGUE
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.idle import IdlePolicy, Signal, Usage
from gpudev.domain.names import NodeName, OperationId, ReservationId
from gpudev.domain.operations import Terms
from gpudev.domain.reservation import Reservation
from gpudev.domain.server import ObservedMember, ObservedServer, ServerPhase
from gpudev.faults import Faults
from gpudev.texts.vocabulary import OperationKind, Reason, Status
from tests.support.active import make_active
from tests.support.engines import make_reservation_engine
from tests.support.reservations import NOON, open_test_stores
from tests.support.simulated_cluster import SimulatedCluster
from tests.support.simulation import MovableClock
from tests.support.words import words_of

pytestmark = pytest.mark.anyio

MINUTE = timedelta(minutes=1)
POLICY = IdlePolicy(after=30 * MINUTE, countdown=10 * MINUTE)
QUIET = {Signal.GPU_USE: 0.0, Signal.GPU_MEMORY: 1.0, Signal.SSH: 0.0, Signal.CPU: 0.1}


class World:
    def __init__(self, stores: Stores) -> None:
        self.stores = stores
        self.clock = MovableClock()
        self.cluster = SimulatedCluster("t4", {NodeName("t4-0"): 4})
        self.sampler = Sampler(
            stores.reservations, stores.reports, self.cluster, POLICY, self.clock, MINUTE, Faults(0.0)
        )
        rules = Rules(DEFAULT_CATALOGUE, TimePolicy(), POLICY)
        self.controller = make_reservation_engine(stores, self.cluster, self.clock, rules)

    async def start(self) -> Reservation:
        user = await self.stores.users.upsert("ada")
        end = NOON + timedelta(hours=20)
        active = await make_active(self.stores, user, now=NOON, expires_at=end)
        self.cluster.servers[active.id] = ObservedServer(
            active.id, "uid", (ObservedMember(NodeName("t4-0"), ServerPhase.READY),)
        )
        return active

    async def pass_time(self, one: Reservation, minutes: int, signals: dict[Signal, float]) -> Reservation:
        """Minute by minute: measured, and looked at."""
        for _ in range(minutes):
            self.clock.time += MINUTE
            self.cluster.use[one.id] = signals
            await self.sampler.sample()
            await self.controller.turn(one.id)
        return await self.stores.reservations.get(one.id)


async def test_a_server_that_nobody_uses_is_warned_and_ended_and_its_use_is_kept(database: str) -> None:
    async with open_test_stores(database) as stores:
        world = World(stores)
        one = await world.start()
        busy = await world.pass_time(one, 60, {**QUIET, Signal.GPU_USE: 90.0})
        assert (busy.state.status, busy.activity.idle_since) == (Status.ACTIVE, None)
        warned = await world.pass_time(one, 32, QUIET)
        assert warned.memory.idle_warned_at is not None
        assert [notice.file_name for notice in world.cluster.homes[one.id]] == ["WARN_IDLE.txt"]
        ended = await world.pass_time(one, 10, QUIET)
        assert (ended.state.status, ended.state.reason) == (Status.EXPIRED, Reason.WENT_IDLE)
        assert "GPU use 0%" in words_of(ended.state.detail)
        points = await stores.reports.list_points(one.id, 2)
        assert [point.gpu_use and round(point.gpu_use) for point in points] == [90, pytest.approx(16, abs=4)]
        assert points[0].idle_share == 0
        assert points[1].idle_share > 0.5


async def test_who_comes_back_or_keeps_it_is_let_be(database: str) -> None:
    async with open_test_stores(database) as stores:
        world = World(stores)
        one = await world.start()
        assert (await world.pass_time(one, 35, QUIET)).memory.idle_warned_at is not None
        back = await world.pass_time(one, 2, {**QUIET, Signal.SSH: 1.0})
        assert (back.memory.idle_warned_at, back.state.status) == (None, Status.ACTIVE)
        assert world.cluster.homes[one.id] == frozenset()
        assert (await world.pass_time(one, 35, QUIET)).memory.idle_warned_at is not None
        operation = OperationId("11111111-1111-4111-8111-111111111111")
        terms = Terms(timedelta(hours=2), reason="A long compile.")
        now = world.clock.time
        await stores.operations.request(operation, back, OperationKind.KEEP, now, terms=terms)
        kept = await world.pass_time(one, 100, QUIET)
        assert (kept.state.status, kept.memory.idle_warned_at) == (Status.ACTIVE, None)
        assert kept.memory.kept_until == now + timedelta(hours=2)
        assert (await world.pass_time(one, 40, QUIET)).state.reason is Reason.WENT_IDLE


async def test_one_server_that_cannot_be_read_does_not_keep_the_others_from_being_measured(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_test_stores(database) as stores:
        world = World(stores)
        hostile, honest = await world.start(), await world.start()
        measure = world.cluster.measure

        async def fail_for_one(reservation_id: ReservationId, uid: str, now: datetime) -> Usage | None:
            if reservation_id == hostile.id:
                raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
            return await measure(reservation_id, uid, now)

        monkeypatch.setattr(world.cluster, "measure", fail_for_one)
        for one in (hostile, honest):
            world.cluster.use[one.id] = QUIET
        assert [sample.reservation_id for sample in await world.sampler.sample()] == [honest.id]
        assert len(await stores.reports.list_points(honest.id, 2)) == 1


async def test_one_sample_that_cannot_be_kept_does_not_lose_the_others(database: str) -> None:
    async with open_test_stores(database) as stores:
        world = World(stores)
        hostile, honest = await world.start(), await world.start()
        world.cluster.use = {hostile.id: {**QUIET, Signal.CPU: 1e300}, honest.id: QUIET}
        await world.sampler.sample()
        assert len(await stores.reports.list_points(honest.id, 2)) == 1
        assert await stores.reports.list_points(hostile.id, 2) == ()


async def test_a_server_that_cannot_be_measured_is_busy(database: str) -> None:
    async with open_test_stores(database) as stores:
        world = World(stores)
        one = await world.start()
        unknown = {name: value for name, value in QUIET.items() if name is not Signal.GPU_USE}
        assert (await world.pass_time(one, 60, unknown)).activity.idle_since is None
        assert (await world.pass_time(one, 35, QUIET)).memory.idle_warned_at is not None
        world.cluster.is_silent = True
        world.clock.time += 20 * MINUTE
        world.cluster.is_silent = False
        await world.controller.turn(one.id)
        assert (await stores.reservations.get(one.id)).state.status is Status.ACTIVE
