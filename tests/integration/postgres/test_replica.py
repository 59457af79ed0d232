"""Lists of what is over come from a real streaming replica, and nobody notices when it goes away."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest
import structlog

from gpudev.adapters.local.database.embedded_postgres import EmbeddedPostgres
from gpudev.adapters.postgres.migrate import migrate
from gpudev.adapters.postgres.pool import Database
from gpudev.app.audit_log import AuditTally
from gpudev.app.identity.authentication import KeyOwners, Visitor
from gpudev.app.identity.login import KeyIssuer, KeyLife, LoginOrigin
from gpudev.app.reservations.lookup import Lookup
from gpudev.bootstrap.access import make_authentication, make_key_uses
from gpudev.bootstrap.foundation import Stores, SystemClock
from gpudev.domain.audit import SERVER_ITSELF, AuditAction, AuditEntry
from gpudev.domain.catalogue import DEFAULT_CATALOGUE
from gpudev.domain.errors import Unauthenticated
from gpudev.domain.plans.turn import Record
from gpudev.domain.reservation import Event, Reservation, end
from gpudev.ports.reservations import ListQuery, Page
from gpudev.settings import Settings
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import TERMINAL, EventKind, Reason, Status
from tests.support.replica import catch_up, primary_and_replica
from tests.support.reservations import NOON, make_reservation, submit

pytestmark = [pytest.mark.anyio, pytest.mark.long]

ENDED = ListQuery(statuses=tuple(TERMINAL))


@dataclass(frozen=True, slots=True)
class World:
    primary: EmbeddedPostgres
    replica: EmbeddedPostgres
    stores: Stores
    lookup: Lookup
    visitor: Visitor
    ended: Reservation

    async def list(self, query: ListQuery) -> Page:
        return await self.lookup.list_page(self.visitor, query)

    async def stop_replaying(self) -> None:
        """From now on the replica answers what it knows, and learns nothing new."""
        connection = await asyncpg.connect(self.replica.dsn)
        try:
            await connection.execute("SELECT pg_wal_replay_pause()")
        finally:
            await connection.close()


@pytest.fixture
async def world() -> AsyncIterator[World]:
    with tempfile.TemporaryDirectory(prefix="gpu-dev-replica-") as folder:
        async with primary_and_replica(Path(folder)) as (primary, replica):
            connection = await asyncpg.connect(primary.dsn)
            await migrate(connection)
            await connection.close()
            async with (
                Database(primary.dsn) as database,
                Database(replica.dsn, connect_timeout=2) as copy,
            ):
                stores = Stores.on(database, copy)
                await stores.nodes.sync_types(DEFAULT_CATALOGUE.types)
                clock = SystemClock()
                user = await stores.users.upsert("ada")
                issued = await KeyIssuer(
                    stores.users, clock, KeyLife(timedelta(hours=1), timedelta(hours=1))
                ).issue(user, LoginOrigin("test", "here"))
                ended = await _end(stores, await submit(stores, make_reservation(user)))
                await submit(stores, make_reservation(user))
                await catch_up(primary, replica)
                owners = KeyOwners(stores.users, clock)
                tally = AuditTally(stores.audit, stores.health, clock)
                key_uses = make_key_uses(stores, clock)
                authentication = make_authentication(Settings(), owners, key_uses, tally, clock)
                lookup = Lookup(
                    stores.reservations,
                    stores.audit,
                    authentication,
                    stores.users,
                    stores.reservations.history,
                )
                visitor = await authentication.meet(issued.api_key, "here")
                yield World(primary, replica, stores, lookup, visitor, ended)


async def _end(stores: Stores, reservation: Reservation) -> Reservation:
    later = NOON + timedelta(minutes=1)
    after = end(reservation, Status.CANCELLED, Reason.CANCELLED_BY_USER, later)
    claim = await stores.reservations.claim(reservation.id, timedelta(minutes=1))
    assert claim is not None
    event = Event(EventKind.CANCELLED, fact("words", words="Cancelled."), later)
    return await stores.reservations.record(claim, Record(reservation, after, event))


async def test_what_is_over_is_read_from_the_replica_alone(world: World) -> None:
    await world.stop_replaying()
    user = await world.stores.users.upsert("ada")
    await _end(world.stores, await submit(world.stores, make_reservation(user)))
    page = await world.list(ENDED)
    assert ([found.id for found in page.reservations], page.total) == ([world.ended.id], 1)
    assert (await world.list(ListQuery())).total == 3


async def test_a_revoked_key_is_refused_though_the_replica_has_not_heard_of_it(world: World) -> None:
    await world.stop_replaying()
    await world.stores.users.revoke_keys(AuditEntry(SERVER_ITSELF, AuditAction.KEY_REVOKED))
    with pytest.raises(Unauthenticated):
        await world.list(ENDED)


async def test_without_the_replica_the_primary_answers_and_the_log_says_so(world: World) -> None:
    assert (await world.list(ENDED)).total == 1
    await world.replica.stop()
    with structlog.testing.capture_logs() as logs:
        assert (await world.list(ENDED)).total == 1
        assert (await world.list(ENDED)).total == 1
    assert [line["event"] for line in logs] == ["replica_unavailable"]
