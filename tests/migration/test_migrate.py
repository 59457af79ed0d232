"""Migrations are applied once, by one process at a time, and never change afterwards."""

from __future__ import annotations

import asyncio
import itertools
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from gpudev.adapters.postgres.migrate import (
    _FORMER_CHECKSUMS,
    check_pgmq,
    latest_version,
    list_migrations,
    migrate,
    read_pgmq_sql,
)
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


async def _fetch(dsn: str, query: str) -> Any:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(query)
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


def test_the_sql_of_pgmq_is_pinned_and_part_of_the_checksum() -> None:
    first = list_migrations()[0]
    check_pgmq(read_pgmq_sql(), first.pgmq_digest)
    other = replace(first, sql=first.sql.replace(first.pgmq_digest, "0" * 64))
    assert other.checksum != first.checksum


async def test_another_sql_of_pgmq_is_refused_before_anything_is_applied(
    empty_database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "pgmq"
    (package / "sql").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "sql" / "pgmq.sql").write_bytes(read_pgmq_sql() + b"\n-- one line more\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pgmq", raising=False)
    with pytest.raises(Defect, match="not the one that this version installs"):
        await _migrate(empty_database)
    assert await _fetch(empty_database, "SELECT count(*) FROM schema_migrations") == 0
    assert await _fetch(empty_database, "SELECT to_regclass('pgmq.meta')") is None


async def test_a_database_with_pgmq_from_before_it_was_pinned_still_starts(empty_database: str) -> None:
    await _migrate(empty_database)
    (former,) = _FORMER_CHECKSUMS[1]
    await _execute(
        empty_database,
        f"UPDATE schema_migrations SET checksum = '{former}' WHERE number = 1",  # noqa: S608 - ours
    )
    assert await _migrate(empty_database) == ()
    await _execute(empty_database, "UPDATE schema_migrations SET checksum = 'other' WHERE number = 1")
    with pytest.raises(Defect, match="0001 was changed"):
        await _migrate(empty_database)


async def test_a_database_from_the_future_is_refused(empty_database: str) -> None:
    await _migrate(empty_database)
    await _execute(
        empty_database, "INSERT INTO schema_migrations (number, name, checksum) VALUES (9999, 'new', 'x')"
    )
    with pytest.raises(Defect, match="9999"):
        await _migrate(empty_database)
