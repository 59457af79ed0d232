"""Ends in real time, on a real database: none early, and how late they are is printed."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gpudev.bootstrap.clusters import Backends
from gpudev.bootstrap.controller import make_controllers
from gpudev.bootstrap.disks import open_local_volumes
from gpudev.bootstrap.foundation import SystemClock
from gpudev.domain.catalogue import DEFAULT_CATALOGUE
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.names import NodeName
from gpudev.domain.reservation import Reservation
from gpudev.domain.server import ObservedMember, ObservedServer, ServerPhase
from gpudev.settings import Settings
from tests.support.active import make_active
from tests.support.reservations import open_test_stores
from tests.support.simulated_cluster import SimulatedCluster

pytestmark = [pytest.mark.anyio, pytest.mark.long]

COUNT = 200
FIRST_END, LAST_END = timedelta(seconds=20), timedelta(seconds=40)


async def test_no_end_is_written_before_its_time(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = NodeName("t4-0")
    cluster = SimulatedCluster("t4", {node: COUNT})
    clock = SystemClock()
    async with open_test_stores(database) as stores, open_local_volumes(tmp_path, clock) as volumes:
        user = await stores.users.upsert("ada")
        began = datetime.now(UTC)
        spread = (LAST_END - FIRST_END) / COUNT
        rows = [
            await make_active(
                stores, user, expires_at=began + FIRST_END + number * spread - TimePolicy().grace
            )
            for number in range(COUNT)
        ]
        for row in rows:
            member = ObservedMember(node, ServerPhase.READY)
            cluster.servers[row.id] = ObservedServer(row.id, "uid", (member,))
        backends = Backends(cluster, volumes)
        controllers, _ = make_controllers(Settings(), stores, backends, DEFAULT_CATALOGUE, clock)
        running = asyncio.create_task(controllers.run())
        try:
            async with asyncio.timeout(120):
                while cluster.servers:  # noqa: ASYNC110 - what it waits for is the controllers' doing
                    await asyncio.sleep(0.05)
        finally:
            controllers.stop()
            await running
        ended = [await stores.reservations.get(row.id) for row in rows]
    late = sorted(map(measure_lateness, ended))
    p50, p99 = late[COUNT // 2], late[COUNT * 99 // 100]
    with capsys.disabled():
        sys.stdout.write(f"\nlate by p50 {p50:.3f} s, p99 {p99:.3f} s, most {late[-1]:.3f} s\n")
    assert late[0] >= 0


def measure_lateness(row: Reservation) -> float:
    assert row.state.ended_at is not None
    assert row.state.expires_at is not None
    return (row.state.ended_at - row.state.expires_at - TimePolicy().grace).total_seconds()
