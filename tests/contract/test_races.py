"""Writers that meet: whatever the order, nothing is half written, settled unseen, or waits for ever."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import asyncpg
import pytest

from gpudev.adapters.postgres.audit import audit_columns
from gpudev.adapters.postgres.queries import load_queries
from gpudev.bootstrap.foundation import Stores
from gpudev.domain.disk import DiskId
from gpudev.domain.errors import Conflict
from gpudev.domain.names import NodeName, OperationId, ReservationId
from gpudev.domain.plans.turn import Record
from gpudev.domain.queue import QueuePlace
from gpudev.domain.reservation import Event, Reservation, end, place, queue
from gpudev.ports.reservations import Claim, HomeWish
from gpudev.ports.turns import Kind
from gpudev.ports.users import User
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import EventKind, OperationKind, Reason, Status
from tests.support.reservations import NOON, make_reservation, open_test_stores, submit

pytestmark = pytest.mark.anyio

LEASE = timedelta(seconds=30)
SAID = fact("words", words="Said.")
NODE = NodeName("t4-0")
_WAITS = """
SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database())
"""
_TAKE_LEASE = """
UPDATE turns SET lease_token = gen_random_uuid(), lease_until = clock_timestamp() + interval '30 s'
WHERE key = $1
"""


@pytest.fixture
async def stores(database: str) -> AsyncIterator[Stores]:
    async with open_test_stores(database) as opened:
        yield opened


@pytest.fixture
async def user(stores: Stores) -> User:
    return await stores.users.upsert("ada")


@pytest.fixture
async def rival(database: str) -> AsyncIterator[asyncpg.Connection]:
    """Another process, in the middle of a transaction."""
    connection = await asyncpg.connect(database)
    await connection.set_type_codec("jsonb", schema="pg_catalog", encoder=str, decoder=str)
    try:
        yield connection
    finally:
        await connection.close()


async def until_it_waits(rival: asyncpg.Connection) -> None:
    """For a lock that the rival has."""
    while not await rival.fetchval(_WAITS):  # noqa: ASYNC110 - PostgreSQL has no event for it
        await asyncio.sleep(0.01)


async def claim(stores: Stores, reservation_id: ReservationId) -> Claim:
    claimed = await stores.reservations.claim(reservation_id, LEASE)
    assert claimed is not None
    return claimed


def home() -> HomeWish:
    return HomeWish("default", DiskId(str(uuid.uuid4())), 20, is_default=True)


def placing(asked: Reservation) -> Record:
    return Record(asked, place(asked, (NODE,), NOON), Event(EventKind.PLACED, SAID, NOON))


def cancelling(before: Reservation) -> Record:
    after = end(before, Status.CANCELLED, Reason.CANCELLED_BY_USER, NOON)
    return Record(before, after, Event(EventKind.CANCELLED, SAID, NOON, after.state.reason))


async def test_a_forecast_that_was_made_since_the_claim_goes_with_the_end(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user))
    async with stores.admissions.lock("t4") as admission:
        assert await admission.record(placing(asked))
    claimed = await claim(stores, asked.id)
    back = queue(claimed.reservation, Reason.PLACEMENT_LOST, SAID)
    event = Event(EventKind.REQUEUED, SAID, NOON, Reason.PLACEMENT_LOST)
    await stores.reservations.record(claimed, Record(claimed.reservation, back, event))
    await stores.turns.end(claimed.lease, None)
    waiting = await stores.reservations.get(asked.id)
    await stores.operations.request(OperationId(str(uuid.uuid4())), waiting, OperationKind.CANCEL, NOON)
    claimed = await claim(stores, asked.id)
    told = QueuePlace(asked.id, 1, NOON + timedelta(hours=3), Reason.WAITING_IN_LINE, SAID, (NODE,), None)
    async with stores.admissions.lock("t4") as admission:
        await admission.set_queue_places([told], NOON)
    await stores.reservations.record(claimed, cancelling(claimed.reservation))
    forecast = (await stores.reservations.get(asked.id)).forecast
    assert (forecast.queue_position, forecast.estimated_start_at, forecast.planned_nodes) == (None, None, ())


async def test_memory_is_written_with_the_state_when_the_lease_is_taken_over(
    stores: Stores, user: User, rival: asyncpg.Connection
) -> None:
    asked = await submit(stores, make_reservation(user))
    claimed = await claim(stores, asked.id)
    after = replace(claimed.reservation, memory=replace(claimed.reservation.memory, warned_minutes=5))
    record = Record(claimed.reservation, after, Event(EventKind.WARNING, SAID, NOON))
    async with rival.transaction():
        await rival.execute(_TAKE_LEASE, uuid.UUID(asked.id))
        writing = asyncio.create_task(stores.reservations.record(claimed, record))
        await until_it_waits(rival)
    written = await writing
    stored = await stores.reservations.get(asked.id)
    assert (stored.version, stored.memory.warned_minutes) == (written.version, 5)


async def test_a_submit_that_finds_the_default_disk_taken_never_stops_the_admission_of_its_holder(
    stores: Stores, user: User
) -> None:
    event = Event(EventKind.SUBMITTED, SAID, NOON)

    async def admit(asked: Reservation) -> bool:
        async with stores.admissions.lock("t4") as admission:
            return await admission.record(placing(asked))

    for _ in range(20):
        asked = await submit(stores, make_reservation(user), home())
        others = [stores.reservations.submit(make_reservation(user), event, home=home()) for _ in range(4)]
        placed, *refused = await asyncio.gather(admit(asked), *others, return_exceptions=True)
        assert placed is True
        assert [error.code for error in refused if isinstance(error, Conflict)] == ["disk_in_use"] * 4
        claimed = await claim(stores, asked.id)
        await stores.reservations.record(claimed, cancelling(claimed.reservation))
        await stores.database.execute("UPDATE disks SET state = 'available', reservation_id = NULL")


async def test_a_turn_that_was_asked_for_while_the_claim_waited_is_not_settled_unseen(
    stores: Stores, user: User, rival: asyncpg.Connection
) -> None:
    asked = await submit(stores, make_reservation(user))
    await stores.turns.end((await claim(stores, asked.id)).lease, None)
    request = load_queries("operations").bind(
        "request",
        id=uuid.uuid4(),
        reservation_id=uuid.UUID(asked.id),
        kind="cancel",
        now=NOON,
        is_by_admin=False,
        length=None,
        not_before=None,
        reason="",
        **audit_columns(()),
    )
    async with rival.transaction():
        await rival.execute(*request)
        claiming = asyncio.create_task(claim(stores, asked.id))
        await until_it_waits(rival)
    claimed = await claiming
    await stores.turns.end(claimed.lease, None)
    assert claimed.operations or asked.id in await stores.turns.list_due(Kind.RESERVATION, NOON, 10)


async def test_a_disk_whose_reservation_ends_while_its_claim_waits_is_due(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user), home())
    async with stores.admissions.lock("t4") as admission:
        assert await admission.record(placing(asked))
    disk_id = asked.spec.disk_id
    assert disk_id is not None
    first = await stores.disks.claim(disk_id, LEASE)
    assert first is not None
    await stores.turns.end(first.lease, None)
    statement = load_queries("reservations").bind("wake_disk", id=asked.id)
    async with stores.database.transaction() as connection:
        await connection.execute(*statement)
        claiming = asyncio.create_task(stores.disks.claim(disk_id, LEASE))
        async with stores.database.connection() as watching:
            await until_it_waits(watching)
    seen = await claiming
    assert seen is not None
    await stores.turns.end(seen.lease, None)
    assert disk_id in await stores.turns.list_due(Kind.DISK, NOON, 10)
