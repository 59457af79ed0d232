"""The task that seals the audit log: it bears a database that is not ready, and seals what it finds then."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import asyncpg
import pytest

from gpudev.adapters.postgres.migrate import migrate
from gpudev.adapters.postgres.pool import Database
from gpudev.app import audit_log
from gpudev.app.audit_log import AuditSealer
from gpudev.bootstrap.foundation import Stores
from gpudev.domain.audit import AuditAction, AuditEntry

pytestmark = pytest.mark.anyio

DEADLINE_SECONDS = 30
ENTRIES = 5


async def test_sealing_starts_before_the_schema_and_catches_up_in_batches(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "SEAL_BATCH", 2)
    database = Database(empty_database)
    await database.open()
    stores = Stores.on(database)
    running = asyncio.create_task(AuditSealer(stores.audit, stores.health, 0.01).run())
    try:
        await _migrate(empty_database)
        await stores.audit.write(*[AuditEntry("ada", AuditAction.SUBMIT)] * ENTRIES)
        async with asyncio.timeout(DEADLINE_SECONDS):
            while await stores.audit.list_unsealed():
                assert not running.done()
                await asyncio.sleep(0.01)
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await database.close()


async def _migrate(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await migrate(connection)
    finally:
        await connection.close()
