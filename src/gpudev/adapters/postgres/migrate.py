"""Numbered, forward-only migrations, each applied once and remembered with its checksum.

Any number of processes may call `migrate` at once: an advisory lock lets one work while the others wait
and then find nothing to do. All migrations of a call, the notes that they were applied and the rights of the
service's role are one transaction.

A migration may include the SQL of the `pgmq` package, named by its SHA-256. Any other SQL is refused before
anything is applied, so what is installed is exactly what the migration's checksum stands for.

They run as the owner of the tables, and give the role that the processes of the service connect as its rights
at the end, each time: it owns nothing, and only reads and writes rows.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files

import asyncpg

from gpudev.domain.errors import Conflict, Defect

_EXISTS = "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)"
_CREATE = "SELECT format('CREATE ROLE %I LOGIN', $1::text)"
_WITH_PASSWORD = "SELECT format('CREATE ROLE %I LOGIN PASSWORD %L', $1::text, $2::text)"  # noqa: S105  # a statement
_IS_ADMIN_OF_IT = """
SELECT (rolsuper OR rolcreaterole) AND pg_has_role(current_user, $1::name, 'MEMBER WITH ADMIN OPTION')
FROM pg_roles WHERE rolname = current_user
"""
_SET_PASSWORD = "SELECT format('ALTER ROLE %I PASSWORD %L', $1::text, $2::text)"  # noqa: S105  # a statement
_CHOOSE = "SELECT set_config('gpu_dev.app_role', $1, false)"
_FILE_NAME = re.compile(r"(\d{4})_(\w+)\.sql")
_INCLUDE_PGMQ = re.compile(r"^-- include: pgmq sha256=([0-9a-f]{64})$", re.MULTILINE)
_FORMER_CHECKSUMS = {1: frozenset({"45fee9287478636a10f608d9e8124456a5e3080a89345101580ce54a72edf458"})}
"""Of migrations that were changed in a way that leaves databases as they are. 0001 did not name the digest of
the SQL that it includes: a database that applied it then has its PGMQ from an earlier version, which is left
alone."""
_LOCK = 7_283_461
"""An arbitrary number that only our migrations use as an advisory lock."""
_MOST_DEADLOCKS = 5
_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    number      integer PRIMARY KEY,
    name        text NOT NULL,
    checksum    text NOT NULL,
    applied_at  timestamptz NOT NULL DEFAULT now()
)
"""


@dataclass(frozen=True, slots=True)
class AppRole:
    name: str
    password: str = field(default="", repr=False)
    """Set on the role each time, so that a changed password is in force after the next migration."""


async def grant(connection: asyncpg.Connection, role: AppRole) -> None:
    """Make the role, if it is not there, and let it do what the service does, and nothing else.

    A role that somebody else made, an administrator or an operator of Kubernetes, keeps its password.
    """
    if not await connection.fetchval(_EXISTS, role.name):
        await _create(connection, role)
    elif role.password and await connection.fetchval(_IS_ADMIN_OF_IT, role.name):
        await connection.execute(await connection.fetchval(_SET_PASSWORD, role.name, role.password))
    await connection.execute(_CHOOSE, role.name)
    sql = files(__package__).joinpath("sql", "grants", "app_role.sql").read_text(encoding="utf-8")
    await connection.execute(sql)


async def _create(connection: asyncpg.Connection, role: AppRole) -> None:
    values = (_WITH_PASSWORD, role.name, role.password) if role.password else (_CREATE, role.name)
    try:
        async with connection.transaction():
            await connection.execute(await connection.fetchval(*values))
    except (asyncpg.DuplicateObjectError, asyncpg.UniqueViolationError):
        return  # roles belong to all databases of a server: another one's migration was first
    except asyncpg.InsufficientPrivilegeError as error:
        raise Conflict("app_role_missing", code="no_app_role", role=role.name) from error


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @property
    def pgmq_digest(self) -> str:
        """Of the SQL of PGMQ that it includes; empty if it includes none."""
        match = _INCLUDE_PGMQ.search(self.sql)
        return match[1] if match else ""


def list_migrations() -> tuple[Migration, ...]:
    found = [
        Migration(int(match[1]), match[2], entry.read_text(encoding="utf-8"))
        for entry in files(__package__).joinpath("sql", "migrations").iterdir()
        if (match := _FILE_NAME.fullmatch(entry.name))
    ]
    return tuple(sorted(found, key=lambda migration: migration.number))


def latest_version() -> int:
    return list_migrations()[-1].number


async def migrate(connection: asyncpg.Connection, app_role: AppRole | None = None) -> tuple[str, ...]:
    """Bring the database up to date; the names of what was applied now.

    Connect as the owner of the tables. `app_role` may use them afterwards; None: nobody but the owner does.
    """
    await connection.execute("SELECT pg_advisory_lock($1)", _LOCK)
    try:
        await connection.execute(_TABLE)
        rows = await connection.fetch("SELECT number, checksum FROM schema_migrations")
        applied = {row["number"]: row["checksum"] for row in rows}
        _check_unchanged(applied)
        fresh = [migration for migration in list_migrations() if migration.number not in applied]
        pgmq_sql = await _find_pgmq_sql(connection, fresh)
        for is_last_try in (*[False] * _MOST_DEADLOCKS, True):
            try:
                await _apply_all(connection, fresh, pgmq_sql, app_role)
                break
            except asyncpg.DeadlockDetectedError:  # with a process of the version before; all is as it was
                if is_last_try:
                    raise
        return tuple(f"{migration.number:04} {migration.name}" for migration in fresh)
    finally:
        await connection.execute("SELECT pg_advisory_unlock($1)", _LOCK)


async def _apply_all(
    connection: asyncpg.Connection, fresh: Sequence[Migration], pgmq_sql: str, app_role: AppRole | None
) -> None:
    """In one transaction: whoever sees the newest version as the role may use all of it."""
    async with connection.transaction():
        for migration in fresh:
            await _apply(connection, migration, pgmq_sql)
        if app_role is not None:
            await grant(connection, app_role)


async def _apply(connection: asyncpg.Connection, migration: Migration, pgmq_sql: str) -> None:
    async with connection.transaction():
        if pgmq_sql and migration.pgmq_digest:
            await connection.execute(pgmq_sql)
        await connection.execute(migration.sql)
        await connection.execute(
            "INSERT INTO schema_migrations (number, name, checksum) VALUES ($1, $2, $3)",
            migration.number,
            migration.name,
            migration.checksum,
        )


async def _find_pgmq_sql(connection: asyncpg.Connection, fresh: Sequence[Migration]) -> str:
    """The included SQL, if it is still to be installed, and only if it is the one that was pinned."""
    digest = next((digest for migration in fresh if (digest := migration.pgmq_digest)), "")
    if not digest or await _has_pgmq(connection):
        return ""
    sql = read_pgmq_sql()
    check_pgmq(sql, digest)
    return sql.decode()


def read_pgmq_sql() -> bytes:
    return files("pgmq").joinpath("sql", "pgmq.sql").read_bytes()


def check_pgmq(sql: bytes, digest: str) -> None:
    if (found := hashlib.sha256(sql).hexdigest()) != digest:
        raise Defect("pgmq_not_pinned", found=found, wanted=digest)


async def _has_pgmq(connection: asyncpg.Connection) -> bool:
    return await connection.fetchval("SELECT to_regclass('pgmq.meta') IS NOT NULL") is True


def _check_unchanged(applied: dict[int, str]) -> None:
    known = {migration.number: migration for migration in list_migrations()}
    for number, checksum in applied.items():
        if number not in known:
            raise Defect("migration_unknown", number=number)
        if checksum not in {known[number].checksum, *_FORMER_CHECKSUMS.get(number, ())}:
            raise Defect("migration_changed", number=number)
