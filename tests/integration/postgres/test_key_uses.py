"""Uses of keys are written in batches, and kept while the database does not answer."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from gpudev.adapters.postgres.pool import Database
from gpudev.adapters.postgres.users import PostgresUsers
from gpudev.app.identity.authentication import KeyUses
from gpudev.ports.users import NewKey
from tests.support.reservations import open_test_stores

pytestmark = pytest.mark.anyio

FOREVER = 3600


class Clock:
    def now(self) -> datetime:
        return datetime.now(UTC)


async def test_what_was_noted_is_written_at_the_latest_when_the_process_ends(database: str) -> None:
    async with open_test_stores(database) as stores:
        user = await stores.users.upsert("ada")
        now = datetime.now(UTC)
        await stores.users.add_key(user.user_id, NewKey(b"hash", "prefix01", now + timedelta(hours=1)))
        uses = KeyUses(stores.users, Clock(), FOREVER)
        running = asyncio.create_task(uses.run())
        await asyncio.sleep(0)
        uses.note(b"hash")
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        (key,) = await stores.users.list_keys(user.user_id, b"hash", now)
        assert key.last_used_at is not None
        assert key.last_used_at >= now


async def test_a_silent_database_loses_nothing_and_breaks_nothing(database: str) -> None:
    nowhere = Database("postgresql://nobody@127.0.0.1:1/none")
    await nowhere.open()
    uses = KeyUses(PostgresUsers(nowhere), Clock(), FOREVER)
    uses.note(b"hash")
    await uses.write()
    assert list(uses._uses) == [b"hash"]
    await nowhere.close()
