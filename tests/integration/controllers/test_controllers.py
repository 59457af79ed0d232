"""The controllers at work, with a real database, real dev servers and a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gpudev.adapters.local.sandbox.isolation import Isolation
from gpudev.domain.catalogue import DEFAULT_CATALOGUE, GpuType
from gpudev.domain.names import OperationId, ReservationId
from gpudev.ports.cluster import Cluster, ClusterChange
from gpudev.texts.vocabulary import OperationKind, OperationStatus, Reason, Status
from tests.support.controlled_world import World, eventually, working_controllers
from tests.support.local_cluster import open_cluster, wait_ready
from tests.support.reservations import NOON, make_reservation, open_test_stores, submit

pytestmark = pytest.mark.anyio

GRACE = timedelta(seconds=120)
LATER = NOON + timedelta(seconds=1)
OPERATION = OperationId("11111111-1111-4111-8111-111111111111")
UNKNOWN = GpuType("z9", "z9.metal", 4, 8, 32)


@pytest.fixture
async def idle_world(database: str, tmp_path: Path) -> AsyncIterator[World]:
    """Everything but controllers."""
    async with open_test_stores(database) as stores, open_cluster(tmp_path, Isolation.NONE) as cluster:
        await stores.nodes.sync_types((*DEFAULT_CATALOGUE.types, UNKNOWN))
        yield World(stores, cluster)


@pytest.fixture
async def world(idle_world: World, tmp_path: Path) -> AsyncIterator[World]:
    async with working_controllers(idle_world, tmp_path):
        yield idle_world


async def test_a_reservation_runs_from_submit_to_its_end(world: World) -> None:
    asked = await submit(world.stores, make_reservation(await world.user()))
    active = await world.active(asked)
    assert active.state.launched_at == NOON
    assert active.state.expires_at == NOON + timedelta(hours=1)
    assert active.host_keys

    await world.move_to(NOON + timedelta(hours=1) + GRACE - timedelta(seconds=1), asked)
    probe = await submit(world.stores, make_reservation(await world.user()))
    await world.active(probe)
    assert (await world.get(asked)).state.status is Status.ACTIVE, "not before its time, grace included"

    await world.move_to(NOON + timedelta(hours=1) + GRACE, asked)
    ended = await world.until(asked, lambda now: now.is_cleaned)
    assert (ended.state.status, ended.state.reason) == (Status.EXPIRED, Reason.TIME_IS_UP)
    assert await world.kinds(asked) == ["submitted", "placed", "active", "warned", "expired", "cleaned"]
    assert set(world.cluster.snapshot().servers) == {probe.id}


async def test_the_queue_moves_when_room_comes_back(world: World) -> None:
    user = await world.user()
    holders = [await submit(world.stores, make_reservation(user, gpu_count=4)) for _ in range(2)]
    for holder in holders:
        await world.active(holder)
    waiting = await submit(world.stores, make_reservation(user, gpu_count=2))
    queued = await world.until(waiting, lambda now: now.forecast.queue_position is not None)
    assert (queued.state.status, queued.forecast.queue_position) == (Status.QUEUED, 1)
    assert queued.forecast.estimated_start_at == NOON + timedelta(hours=1, minutes=5), (
        "the end and its grace, on the grid"
    )
    await world.stores.operations.request(OPERATION, holders[0], OperationKind.CANCEL, NOON)
    started = await world.active(waiting)
    assert started.node is not None
    assert (await world.stores.operations.get(OPERATION, user.user_id)).status is OperationStatus.DONE


async def test_a_later_request_moves_nobody_who_was_promised_a_time(
    world: World,
) -> None:
    """Two nodes of four GPUs: one is full for an hour, the other has two free."""
    user = await world.user()
    for count in (4, 2):
        await world.active(await submit(world.stores, make_reservation(user, gpu_count=count)))
    large = await submit(world.stores, make_reservation(user, gpu_count=4))
    promised = await world.until(large, lambda now: now.forecast.estimated_start_at is not None)
    assert len(promised.forecast.planned_nodes) == 1
    long = timedelta(hours=20)
    small = await submit(world.stores, make_reservation(user, gpu_count=2, duration=long, created_at=LATER))
    await world.until(
        small, lambda now: now.forecast.queue_position == 2 or now.state.status is not Status.PENDING
    )
    again = await world.get(large)
    assert (again.forecast.estimated_start_at, again.forecast.planned_nodes) == (
        promised.forecast.estimated_start_at,
        promised.forecast.planned_nodes,
    )


async def test_cancelling_one_who_waits_moves_up_those_behind(world: World) -> None:
    user = await world.user()
    for _ in range(2):
        await world.active(await submit(world.stores, make_reservation(user, gpu_count=4)))
    first = await submit(world.stores, make_reservation(user, gpu_count=2))
    second = await submit(world.stores, make_reservation(user, gpu_count=1, created_at=NOON + timedelta(1)))
    await world.until(second, lambda now: now.forecast.queue_position == 2)
    await world.stores.operations.request(OPERATION, first, OperationKind.CANCEL, NOON)
    await world.until(second, lambda now: now.forecast.queue_position == 1)
    cleaned = await world.until(first, lambda now: now.is_cleaned)
    assert cleaned.state.status is Status.CANCELLED


async def test_a_server_that_is_removed_from_outside_fails_its_reservation(world: World) -> None:
    asked = await submit(world.stores, make_reservation(await world.user()))
    await world.active(asked)
    server = world.cluster.snapshot().servers[asked.id]
    await world.cluster.delete_server(asked.id, server.uid)
    lost = await world.until(asked, lambda now: now.is_cleaned)
    assert (lost.state.status, lost.state.reason) == (Status.FAILED, Reason.POD_DELETED)


async def test_an_error_of_ours_ends_the_reservation_after_three_tries_and_is_kept(world: World) -> None:
    """A type that the controllers do not know: every turn fails."""
    asked = await submit(world.stores, make_reservation(await world.user(), gpu_type="z9"))
    failed = await world.until(asked, lambda now: now.is_ended)
    assert (failed.state.status, failed.state.reason) == (Status.FAILED, Reason.INTERNAL_ERROR)
    dead = await world.stores.database.fetch(
        "SELECT message ->> 'reservation_id' AS id FROM pgmq.q_gpu_reservations_dead"
    )
    assert [row["id"] for row in dead] == [asked.id]
    [letter] = await world.stores.messages.dead_letters.list_all(10)
    assert "z9" in letter.error


@dataclass(frozen=True)
class Deaf:
    """A cluster that works, and whose changes cannot be followed."""

    cluster: Cluster

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cluster, name)

    def changes(self) -> AsyncIterator[ClusterChange]:
        raise RuntimeError("Said by the test.")


async def test_a_source_of_hints_that_always_fails_stops_nothing(idle_world: World, tmp_path: Path) -> None:
    deaf: Any = Deaf(idle_world.cluster)
    async with working_controllers(replace(idle_world, cluster=deaf), tmp_path):
        asked = await submit(idle_world.stores, make_reservation(await idle_world.user()))
        made = await idle_world.until(asked, lambda now: now.state.status is not Status.PENDING)
        assert made.state.status is Status.PREPARING
        await wait_ready(idle_world.cluster, asked.id)
        await idle_world.move_to(LATER, asked)
        await idle_world.active(asked)


async def test_messages_are_archived_with_their_turns(world: World) -> None:
    asked = await submit(world.stores, make_reservation(await world.user()))
    await world.active(asked)

    async def is_empty() -> bool:
        return await world.stores.messages.of_reservations.count() == 0

    await eventually(is_empty)


async def test_what_is_due_is_found_without_any_hint(idle_world: World, tmp_path: Path) -> None:
    """Every message and every signal is lost; what is due still stands in the database."""
    asked = await submit(idle_world.stores, make_reservation(await idle_world.user()))
    ended = await submit(idle_world.stores, make_reservation(await idle_world.user()))
    await idle_world.stores.operations.request(OPERATION, ended, OperationKind.CANCEL, NOON)
    await idle_world.stores.database.execute("SELECT pgmq.purge_queue('gpu_reservations')")
    async with working_controllers(idle_world, tmp_path):
        await idle_world.active(asked)
        await idle_world.until(ended, lambda now: now.is_cleaned)


async def test_two_controllers_share_the_work(world: World, database: str, tmp_path: Path) -> None:
    """Two on one database and one cluster: every reservation is placed, started and told of once."""
    async with open_test_stores(database) as other_stores:
        other = World(other_stores, world.cluster, world.clock)
        async with working_controllers(other, tmp_path):
            user = await world.user()
            asked = [make_reservation(user, created_at=NOON + timedelta(seconds=i)) for i in range(8)]
            submitted = await asyncio.gather(*(submit(world.stores, each) for each in asked))
            for reservation in submitted:
                await world.active(reservation)
                assert await world.kinds(reservation) == ["submitted", "placed", "active"]


async def test_of_twelve_in_a_row_eight_start_and_four_wait_in_order(world: World) -> None:
    user = await world.user()
    asked = [make_reservation(user, created_at=NOON + timedelta(seconds=i)) for i in range(12)]
    submitted = [await submit(world.stores, reservation) for reservation in asked]
    for reservation in submitted[:8]:
        await world.active(reservation)
    for position, reservation in enumerate(submitted[8:], start=1):
        await world.until(reservation, lambda now, place=position: now.forecast.queue_position == place)
    names = [ReservationId(server) for server in world.cluster.snapshot().servers]
    assert sorted(names) == sorted(reservation.id for reservation in submitted[:8])
