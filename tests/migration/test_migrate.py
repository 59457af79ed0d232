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
from gpudev.ports.reservations import ListQuery
from gpudev.texts.fact import fact
from tests.support.reservations import open_test_stores
from tests.support.words import words_of

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


_SENTENCES = """
UPDATE reservations SET detail = 'Warning: The node is silent.', extension_error = 'Too long.',
    warning = 'Mind the gap.', told_notices = ARRAY['WARN_IDLE.txt: Nobody uses it.'] WHERE name = 'one';
INSERT INTO reservation_events (reservation_id, number, kind, message, at, elapsed)
SELECT reservation_id, 1, 'submitted', 'Asked for 1 t4 GPU.', now(), '0' FROM reservations;
INSERT INTO disks (disk_id, user_id, name, size_gb, created_at, state, problem)
SELECT gen_random_uuid(), user_id, 'work', 10, now(), 'available', 'Volume vol-1 is gone.' FROM api_users;
INSERT INTO disk_events (disk_id, number, kind, message, at)
SELECT disk_id, 1, 'problem', 'Volume vol-1 is gone.', now() FROM disks;
INSERT INTO disk_reconciliations (at, reconciled_by, aws_volumes, db_records, synced, updated, created,
                                  errors, orphaned_db_active, orphaned_db_deleted, remarks)
VALUES (now(), 'test', 0, 0, 0, 0, 0, 0, 0, 0, ARRAY['One.', 'Two.']);
"""


async def test_sentences_from_before_there_were_facts_are_kept(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tuple(itertools.takewhile(lambda one: one.name != "facts", list_migrations()))
    with monkeypatch.context() as patched:
        patched.setattr("gpudev.adapters.postgres.migrate.list_migrations", lambda: before)
        await _migrate(empty_database)
    await _execute(empty_database, _TWO_RESERVATIONS + _SENTENCES)
    await _migrate(empty_database)
    async with open_test_stores(empty_database) as stores:
        page = await stores.reservations.list_page(ListQuery(None, limit=2, offset=0))
        by_name = {row.spec.name: row for row in page.reservations}
        one, other = by_name["one"], by_name["two"]
        events = await stores.reservations.list_events(one.id, 0)
        [disk] = await stores.disks.list_stuck()
        told = await stores.disks.list_events(disk.id)
        last = await stores.disk_ledger.find_last()
    assert one.state.detail == fact("server_warning", what=fact("words", words="The node is silent."))
    assert words_of(one.state.detail) == "Warning: The node is silent."
    assert words_of(one.memory.extension_error) == "Too long."
    assert [*map(words_of, one.spec.warnings)] == ["Mind the gap."]
    assert (one.memory.told_notices, other.state.detail, other.memory.extension_error) == (None, None, None)
    assert [stored.event.message for stored in events] == ["Asked for 1 t4 GPU."]
    assert (words_of(disk.problem), told[0].message) == ("Volume vol-1 is gone.", "Volume vol-1 is gone.")
    assert last is not None
    assert [*map(words_of, last.remarks)] == ["One.", "Two."]


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
