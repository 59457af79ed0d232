"""What operators select from the database, by the names that the API uses, on real PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import asyncpg
import pytest

from gpudev.bootstrap.foundation import Stores
from gpudev.domain.capacity import Availability
from gpudev.domain.names import NodeName
from gpudev.domain.plans.turn import Record
from gpudev.domain.reservation import Event, Reservation, end, place
from gpudev.ports.users import User
from gpudev.texts.vocabulary import EventKind, Reason, Status
from tests.support.active import ADDRESS, make_active
from tests.support.reservations import NOON, make_reservation, submit

pytestmark = pytest.mark.anyio

HOUR = timedelta(hours=1)
ANALYTICS = """
SELECT launched_at - created_at AS wait, reservation_ended - launched_at AS used,
       reservation_ended < expires_at AS is_early
FROM reservations WHERE job_id = $1
"""


@pytest.fixture
async def operator(database: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database)
    yield connection
    await connection.close()


async def _end(stores: Stores, running: Reservation, status: Status, reason: Reason) -> None:
    claim = await stores.reservations.claim(running.id, timedelta(seconds=30))
    assert claim is not None
    ended = end(running, status, reason, NOON + HOUR / 2)
    kind = EventKind(status.value)
    await stores.reservations.record(
        claim, Record(running, ended, Event(kind, ended.state.detail, NOON + HOUR / 2, reason))
    )


async def test_a_request_is_there_after_its_submit(
    stores: Stores, user: User, operator: asyncpg.Connection
) -> None:
    asked = await submit(stores, make_reservation(user, gpu_count=2, duration=HOUR * 3))
    row = await operator.fetchrow("SELECT * FROM reservations WHERE name = $1", asked.spec.name)
    assert row is not None
    assert str(row["job_id"]) == str(row["reservation_id"]) == asked.id
    assert (row["user_id"], row["username"]) == (user.user_id, user.username)
    assert (row["status"], row["version"], row["created_at"]) == ("pending", 1, NOON)
    assert (row["gpu_type"], row["gpu_count"], row["duration_hours"]) == ("t4", 2, 3.0)
    assert (row["launched_at"], row["node_ip"], row["cancelled_at"]) == (None, None, None)
    assert dict(await operator.fetchrow(ANALYTICS, asked.id)) == {
        "wait": None,
        "used": None,
        "is_early": None,
    }


async def test_a_server_is_there_after_its_activation(
    stores: Stores, user: User, operator: asyncpg.Connection
) -> None:
    running = await make_active(stores, user, now=NOON, launched_at=NOON + timedelta(minutes=3))
    row = await operator.fetchrow("SELECT * FROM reservations WHERE status = 'active'")
    assert row is not None
    assert (row["node_name"], row["node_ip"], row["node_port"]) == ("t4-0", ADDRESS.host, ADDRESS.port)
    assert (row["pod_name"], row["ssh_host_keys"]) == (f"gpu-dev-{running.id[:8]}", ["ssh-ed25519 AAAA"])
    assert (row["version"], row["expires_at"]) == (running.version, NOON + HOUR)
    analytics = await operator.fetchrow(ANALYTICS, running.id)
    assert dict(analytics) == {"wait": timedelta(minutes=3), "used": None, "is_early": None}


async def test_early_releases_are_told_from_the_rest(
    stores: Stores, user: User, operator: asyncpg.Connection
) -> None:
    given_back = await make_active(stores, user, now=NOON)
    await _end(stores, given_back, Status.CANCELLED, Reason.CANCELLED_BY_USER)
    analytics = await operator.fetchrow(ANALYTICS, given_back.id)
    assert dict(analytics) == {"wait": timedelta(0), "used": HOUR / 2, "is_early": True}
    over = await make_active(stores, user, now=NOON, expires_at=NOON + HOUR / 2)
    await _end(stores, over, Status.EXPIRED, Reason.TIME_IS_UP)
    analytics = await operator.fetchrow(ANALYTICS, over.id)
    assert dict(analytics) == {"wait": timedelta(0), "used": HOUR / 2, "is_early": False}
    rows = await operator.fetch("SELECT status, cancelled_at FROM reservations")
    assert dict(map(tuple, rows)) == {"cancelled": NOON + HOUR / 2, "expired": None}


async def test_a_gang_is_one_row_with_the_node_of_its_first_rank(
    stores: Stores, user: User, operator: asyncpg.Connection
) -> None:
    asked = await submit(stores, make_reservation(user, node_count=2, gpu_count=2))
    placed = place(asked, (NodeName("t4-1"), NodeName("t4-0")), NOON)
    async with stores.admissions.lock("t4") as transaction:
        assert await transaction.record(Record(asked, placed, Event(EventKind.PLACED, "Placed.", NOON)))
    rows = await operator.fetch("SELECT node_name, gpu_count FROM reservations")
    assert [tuple(row) for row in rows] == [("t4-1", 2)]


async def test_the_availability_of_types_is_there(stores: Stores, operator: asyncpg.Connection) -> None:
    availability = Availability(
        gpu_type="t4",
        total=8,
        available=3,
        max_reservable=2,
        full_nodes_available=1,
        nodes=2,
        is_simulated=False,
        next_start_at=None,
    )
    await stores.nodes.set_availability(availability, "controller-0", NOON)
    row = await operator.fetchrow(
        "SELECT total_cluster_gpus, available_gpus, max_reservable, full_nodes_available, running_instances,"
        " last_availability_update, last_availability_updated_by, is_active FROM gpu_types"
        " WHERE gpu_type = 't4'"
    )
    assert row is not None
    assert tuple(row) == (8, 3, 2, 1, 2, NOON, "controller-0", True)
