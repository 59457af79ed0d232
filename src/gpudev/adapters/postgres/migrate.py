"""Numbered, forward-only migrations, each applied once and remembered with its checksum.

Any number of processes may call `migrate` at once: an advisory lock lets one work while the others wait
and then find nothing to do. A migration and the note that it was applied are one transaction.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib.resources import files

import asyncpg

from gpudev.domain.errors import Defect

_FILE_NAME = re.compile(r"(\d{4})_(\w+)\.sql")
_INCLUDE_PGMQ = "-- include: pgmq"
_LOCK = 7_283_461
"""An arbitrary number that only our migrations use as an advisory lock."""

_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    number      integer PRIMARY KEY,
    name        text NOT NULL,
    checksum    text NOT NULL,
    applied_at  timestamptz NOT NULL DEFAULT now()
)
"""


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def list_migrations() -> tuple[Migration, ...]:
    found = [
        Migration(int(match[1]), match[2], entry.read_text(encoding="utf-8"))
        for entry in files(__package__).joinpath("sql", "migrations").iterdir()
        if (match := _FILE_NAME.fullmatch(entry.name))
    ]
    return tuple(sorted(found, key=lambda migration: migration.number))


def latest_version() -> int:
    return list_migrations()[-1].number


async def migrate(connection: asyncpg.Connection) -> tuple[str, ...]:
    """Bring the database up to date; the names of what was applied now."""
    await connection.execute("SELECT pg_advisory_lock($1)", _LOCK)
    try:
        await connection.execute(_TABLE)
        rows = await connection.fetch("SELECT number, checksum FROM schema_migrations")
        applied = {row["number"]: row["checksum"] for row in rows}
        _check_unchanged(applied)
        fresh = [migration for migration in list_migrations() if migration.number not in applied]
        for migration in fresh:
            await _apply(connection, migration)
        return tuple(f"{migration.number:04} {migration.name}" for migration in fresh)
    finally:
        await connection.execute("SELECT pg_advisory_unlock($1)", _LOCK)


async def _apply(connection: asyncpg.Connection, migration: Migration) -> None:
    async with connection.transaction():
        if _INCLUDE_PGMQ in migration.sql and not await _has_pgmq(connection):
            await connection.execute(files("pgmq").joinpath("sql", "pgmq.sql").read_text(encoding="utf-8"))
        await connection.execute(migration.sql)
        await connection.execute(
            "INSERT INTO schema_migrations (number, name, checksum) VALUES ($1, $2, $3)",
            migration.number,
            migration.name,
            migration.checksum,
        )


async def _has_pgmq(connection: asyncpg.Connection) -> bool:
    return await connection.fetchval("SELECT to_regclass('pgmq.meta') IS NOT NULL") is True


def _check_unchanged(applied: dict[int, str]) -> None:
    known = {migration.number: migration for migration in list_migrations()}
    for number, checksum in applied.items():
        if number not in known:
            raise Defect(
                f"The database has migration {number:04}, which this version does not know.",
                hint="It was migrated by a newer gpu-dev; upgrade this one.",
            )
        if known[number].checksum != checksum:
            raise Defect(
                f"Migration {number:04} was changed after it was applied.",
                hint="The database belongs to another version of gpu-dev; give this one its own.",
            )
