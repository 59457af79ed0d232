"""The output of a submitted command survives a controller that dies while the reservation ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import uuid4

import pytest

from gpudev.app.controllers.reservations import Rules
from gpudev.bootstrap.foundation import Stores
from gpudev.domain.catalogue import DEFAULT_CATALOGUE
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.job import Job
from gpudev.domain.names import NodeName, OperationId
from gpudev.domain.reservation import Reservation
from gpudev.domain.server import ObservedMember, ObservedServer, ServerPhase
from gpudev.ports.turns import Kind
from gpudev.texts.vocabulary import OperationKind
from tests.support.active import make_active
from tests.support.controlled_world import MovableClock
from tests.support.engines import AnyEngine, make_reservation_engine
from tests.support.reservations import open_test_stores
from tests.support.simulated_cluster import SimulatedCluster

pytestmark = pytest.mark.anyio

NODE = NodeName("t4-0")
OUTPUT = "epoch 3: loss 0.17\n"


class Crash(BaseException):
    """What nobody catches: the process is gone."""


@dataclass
class DyingController:
    """Takes the turns of one reservation; dies after so many fault points, once."""

    stores: Stores
    cluster: SimulatedCluster
    dies_after: int
    passed: list[str] = field(default_factory=list)
    clock: MovableClock = field(default_factory=MovableClock)

    async def end(self, row: Reservation) -> None:
        for _ in range(2):
            try:
                while not (await self.stores.reservations.get(row.id)).is_cleaned:
                    await self._make_engine().turn(row.id)
            except Crash:
                await self.stores.turns.take_over(Kind.RESERVATION, self.clock.now())

    def _make_engine(self) -> AnyEngine:
        rules = Rules(DEFAULT_CATALOGUE, TimePolicy())
        return make_reservation_engine(self.stores, self.cluster, self.clock, rules, self._pass_fault_point)

    def _pass_fault_point(self, point: str) -> None:
        self.passed.append(point)
        if len(self.passed) == self.dies_after:
            raise Crash(point)


async def make_running(stores: Stores, cluster: SimulatedCluster) -> Reservation:
    row = await make_active(stores, await stores.users.upsert("ada"))
    member = ObservedMember(NODE, ServerPhase.READY)
    cluster.servers[row.id] = ObservedServer(row.id, "uid", (member,))
    cluster.jobs[row.id] = Job(0, is_fetched=True, output=OUTPUT)
    return row


async def test_no_crash_on_the_way_to_its_end_loses_the_output(database: str) -> None:
    cluster = SimulatedCluster("t4", {NODE: 64})
    async with open_test_stores(database) as stores:
        number, kept, is_over = 0, {}, False
        while not is_over:
            number += 1
            row = await make_running(stores, cluster)
            controller = DyingController(stores, cluster, number)
            now = controller.clock.now()
            await stores.operations.request(OperationId(str(uuid4())), row, OperationKind.CANCEL, now)
            await controller.end(row)
            is_over = len(controller.passed) < number
            point = "no crash" if is_over else controller.passed[number - 1]
            kept[number, point] = await stores.reservations.find_output(row.id)
    assert {point for _, point in kept} >= {"before_keep_job_output", "after_record", "before_delete_server"}
    assert kept == dict.fromkeys(kept, OUTPUT)
