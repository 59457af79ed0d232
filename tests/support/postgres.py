"""A real PostgreSQL for the tests: one server a test process, one clean database a test.

A database takes a tenth of a second of CPU to copy and a hundredth to empty, so a test gets one that an
earlier test has used, emptied. One that differs from the template then, because a test changed the schema or
the rows of the migrations, is dropped.

The fixtures are plain (not async), so that they serve tests of every kind and belong to no event loop. They
give an address; the test connects as the product would.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from gpudev.adapters.local.database.embedded_postgres import EmbeddedPostgres, PostgresOptions
from gpudev.adapters.local.database.postgres_folder import APP_ROLE, ROLE

_TEMPLATE = "migrated_template"
_END_SESSIONS = """
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_READ_SCHEMA = """
SELECT array_agg(row(of_catalog.*)::text ORDER BY of_catalog.name) FROM (
    SELECT 'class' AS name, count(*), max(xmin::text::bigint) FROM pg_class
    UNION ALL SELECT 'attribute', count(*), max(xmin::text::bigint) FROM pg_attribute
    UNION ALL SELECT 'attrdef', count(*), max(xmin::text::bigint) FROM pg_attrdef
    UNION ALL SELECT 'constraint', count(*), max(xmin::text::bigint) FROM pg_constraint
    UNION ALL SELECT 'trigger', count(*), max(xmin::text::bigint) FROM pg_trigger
    UNION ALL SELECT 'proc', count(*), max(xmin::text::bigint) FROM pg_proc
    UNION ALL SELECT 'type', count(*), max(xmin::text::bigint) FROM pg_type
    UNION ALL SELECT 'rewrite', count(*), max(xmin::text::bigint) FROM pg_rewrite
    UNION ALL SELECT 'policy', count(*), max(xmin::text::bigint) FROM pg_policy
    UNION ALL SELECT 'extension', count(*), max(xmin::text::bigint) FROM pg_extension
    UNION ALL SELECT 'namespace', count(*), max(xmin::text::bigint) FROM pg_namespace
    UNION ALL SELECT 'default_acl', count(*), max(xmin::text::bigint) FROM pg_default_acl
    UNION ALL SELECT 'setting', count(*), 0 FROM pg_db_role_setting
        WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
) of_catalog
"""
_LIST_TABLES = """
SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND pg_relation_size(c.oid) > 0
    AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
"""
_LIST_SEQUENCES = """
SELECT c.oid::regclass::text, s.start_value, s.last_value FROM pg_sequences s
JOIN pg_class c ON c.oid = format('%I.%I', s.schemaname, s.sequencename)::regclass
WHERE s.last_value IS NOT NULL
"""
_IS_LARGE = "SELECT pg_database_size(current_database()) > $1"
_MOST_BYTES = 32 * 1024 * 1024
"""What was deleted keeps its place on the disk: a larger database is copied anew."""


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[EmbeddedPostgres]:
    """A running server that forgets everything afterwards, and does not care about a loss of power."""
    # Not below pytest's own temporary folder, which it keeps for three runs: a server takes 50 MB.
    with tempfile.TemporaryDirectory(prefix="gpu-dev-postgres-") as folder:
        options = PostgresOptions(durable=False, shared_buffers="32MB")
        server = EmbeddedPostgres(Path(folder, "postgres"), options)
        asyncio.run(server.start())
        yield server
        asyncio.run(server.stop())


@pytest.fixture
def empty_database(postgres_server: EmbeddedPostgres) -> Iterator[str]:
    """The address of a database of this test alone, without any tables."""
    name = asyncio.run(_create(postgres_server, "template0"))
    yield postgres_server.dsn_of(name)
    asyncio.run(_drop(postgres_server, name))


@pytest.fixture
def database(_databases: Databases) -> Iterator[str]:
    """The address of a database of this test alone, migrated to the newest schema."""
    with _databases.lend() as dsn:
        yield dsn


@pytest.fixture(scope="module")
def module_database(_databases: Databases) -> Iterator[str]:
    """A migrated database that the tests of one module share, for a server that they share too."""
    with _databases.lend() as dsn:
        yield dsn


@pytest.fixture(scope="session")
def _databases(postgres_server: EmbeddedPostgres) -> Databases:
    return asyncio.run(_make_template(postgres_server))


@dataclass(frozen=True, slots=True)
class _Contents:
    """What makes a database differ from the template."""

    schema: object
    rows: Mapping[str, str]
    """Of each table that is not empty, a digest."""
    sequences: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Databases:
    """Copies of the migrated template: one that is lent is as clean as the template."""

    server: EmbeddedPostgres
    template: _Contents
    clean: list[str] = field(default_factory=list)

    @contextmanager
    def lend(self) -> Iterator[str]:
        name = self.clean.pop() if self.clean else asyncio.run(_create(self.server, _TEMPLATE))
        yield self.server.dsn_of(name)
        if asyncio.run(self._empty(name)):
            self.clean.append(name)
        else:
            asyncio.run(_drop(self.server, name))

    async def _empty(self, name: str) -> bool:
        """Whether the database is as the template again."""
        connection = await asyncpg.connect(self.server.dsn_of(name))
        try:
            # A test that failed may have left its connections open.
            await connection.execute(_END_SESSIONS)
            if await connection.fetchval(_IS_LARGE, _MOST_BYTES):
                return False
            tables = [row[0] for row in await connection.fetch(_LIST_TABLES)]
            changed = [table for table in tables if table not in self.template.rows]
            deletions = [f"DELETE FROM {table}" for table in changed]  # noqa: S608 - a name of the catalogue
            starts = [
                f"SELECT setval('{name}', {start}, false)"
                for name, start, _ in await connection.fetch(_LIST_SEQUENCES)
                if name not in self.template.sequences
            ]
            # Without the triggers, which protect the audit log and keep tables in step with each other.
            role = "SET session_replication_role = replica"
            await connection.execute(";".join([role, *deletions, *starts]))
            return await _read_contents(connection, self.template.rows) == self.template
        finally:
            await connection.close()


async def _make_template(server: EmbeddedPostgres) -> Databases:
    # Late: tests that need no schema do not depend on its migrations.
    from gpudev.adapters.postgres.migrate import AppRole, migrate  # noqa: PLC0415

    await _execute(server.dsn, f"CREATE DATABASE {_TEMPLATE} TEMPLATE template0")
    connection = await asyncpg.connect(server.dsn_of(_TEMPLATE))
    try:
        await migrate(connection, AppRole(APP_ROLE))
        # None of those that have a page is empty: nothing was deleted yet.
        tables = [row[0] for row in await connection.fetch(_LIST_TABLES)]
        return Databases(server, await _read_contents(connection, tables))
    finally:
        await connection.close()


async def _read_contents(connection: asyncpg.Connection, tables: Iterable[str]) -> _Contents:
    digest = "SELECT md5(string_agg(t::text, ' ' ORDER BY t::text)) FROM"
    return _Contents(
        schema=await connection.fetchval(_READ_SCHEMA),
        rows={table: str(await connection.fetchval(f"{digest} {table} t")) for table in tables},
        sequences={name: last for name, _, last in await connection.fetch(_LIST_SEQUENCES)},
    )


def as_app(dsn: str) -> str:
    """The address of a database of this server for the role that owns nothing, as the product connects."""
    return dsn.replace(f"//{ROLE}@", f"//{APP_ROLE}@", 1)


async def _create(server: EmbeddedPostgres, template: str) -> str:
    name = f"test_{uuid4().hex}"
    # Copied file by file: a third of the CPU of writing each page to the log.
    await _execute(server.dsn, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
    return name


async def _drop(server: EmbeddedPostgres, name: str) -> None:
    # By force: a test that failed may have left its connections open.
    await _execute(server.dsn, f"DROP DATABASE {name} WITH (FORCE)")


async def _execute(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
