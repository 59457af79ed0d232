"""Migrations are applied once, by one process at a time, and never change afterwards."""

from __future__ import annotations

import asyncio
import itertools

import asyncpg
import pytest

from gpudev.adapters.postgres.migrate import latest_version, list_migrations, migrate
from gpudev.domain.errors import Defect

pytestmark = pytest.mark.anyio

_TWO_RESERVATIONS = """
INSERT INTO gpu_types (gpu_type, instance_type, max_gpus, cpus, memory_gb, max_per_node, is_active)
VALUES ('t4', 'g4dn', 1, 1, 1, 1, true);
WITH owner AS (INSERT INTO api_users (username) VALUES ('ada') RETURNING user_id)
INSERT INTO reservations (reservation_id, user_id, name, gpu_type, gpu_count, duration, created_at, status,
                          last_updated)
SELECT gen_random_uuid(), user_id, name, 't4', 1, '1 hour', now(), 'pending', now()
FROM owner, unnest(ARRAY['one', 'two']) AS name;
"""


async def _migrate(dsn: str) -> tuple[str, ...]:
    connection = await asyncpg.connect(dsn)
    try:
        return await migrate(connection)
    finally:
        await connection.close()


async def _execute(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def test_numbers_are_consecutive() -> None:
    assert [migration.number for migration in list_migrations()] == list(range(1, latest_version() + 1))


async def test_the_second_run_has_nothing_to_do(empty_database: str) -> None:
    assert len(await _migrate(empty_database)) == latest_version()
    assert await _migrate(empty_database) == ()


async def test_many_at_once_apply_each_migration_once(empty_database: str) -> None:
    applied = await asyncio.gather(*(_migrate(empty_database) for _ in range(4)))
    assert sorted(len(names) for names in applied) == [0, 0, 0, latest_version()]


async def test_what_was_reserved_before_there_were_totals_is_counted(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tuple(itertools.takewhile(lambda one: one.name != "totals", list_migrations()))
    with monkeypatch.context() as patched:
        patched.setattr("gpudev.adapters.postgres.migrate.list_migrations", lambda: before)
        await _migrate(empty_database)
    await _execute(empty_database, _TWO_RESERVATIONS)
    await _migrate(empty_database)
    connection = await asyncpg.connect(empty_database)
    try:
        assert await connection.fetchval("SELECT sum(counted) FROM reservation_counts") == 2
    finally:
        await connection.close()


async def test_a_changed_migration_is_refused(empty_database: str) -> None:
    await _migrate(empty_database)
    await _execute(empty_database, "UPDATE schema_migrations SET checksum = 'other' WHERE number = 2")
    with pytest.raises(Defect, match="0002 was changed"):
        await _migrate(empty_database)


async def test_a_database_from_the_future_is_refused(empty_database: str) -> None:
    await _migrate(empty_database)
    await _execute(
        empty_database, "INSERT INTO schema_migrations (number, name, checksum) VALUES (9999, 'new', 'x')"
    )
    with pytest.raises(Defect, match="9999"):
        await _migrate(empty_database)
