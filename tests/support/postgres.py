"""A real PostgreSQL for the tests: one server a test process, one fresh database a test.

The fixtures are plain (not async), so that they serve tests of every kind and belong to no event loop. They
give an address; the test connects as the product would.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from gpudev.adapters.local.database.embedded_postgres import EmbeddedPostgres, PostgresOptions
from gpudev.adapters.local.database.postgres_data import APP_ROLE, ROLE

_TEMPLATE = "migrated_template"


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
    with _database(postgres_server, template="template0") as dsn:
        yield dsn


@pytest.fixture
def database(postgres_server: EmbeddedPostgres, _migrated_template: str) -> Iterator[str]:
    """The address of a database of this test alone, migrated to the newest schema."""
    with _database(postgres_server, template=_migrated_template) as dsn:
        yield dsn


@pytest.fixture(scope="module")
def module_database(postgres_server: EmbeddedPostgres, _migrated_template: str) -> Iterator[str]:
    """A migrated database that the tests of one module share, for a server that they share too."""
    with _database(postgres_server, template=_migrated_template) as dsn:
        yield dsn


@pytest.fixture(scope="session")
def _migrated_template(postgres_server: EmbeddedPostgres) -> str:
    asyncio.run(_make_template(postgres_server))
    return _TEMPLATE


async def _make_template(server: EmbeddedPostgres) -> None:
    # Late: tests that need no schema do not depend on its migrations.
    from gpudev.adapters.postgres.app_role import AppRole  # noqa: PLC0415
    from gpudev.adapters.postgres.migrate import migrate  # noqa: PLC0415

    await _execute(server.dsn, f"CREATE DATABASE {_TEMPLATE} TEMPLATE template0")
    connection = await asyncpg.connect(server.dsn_of(_TEMPLATE))
    try:
        await migrate(connection, AppRole(APP_ROLE))
    finally:
        await connection.close()


def as_app(dsn: str) -> str:
    """The address of a database of this server for the role that owns nothing, as the product connects."""
    return dsn.replace(f"//{ROLE}@", f"//{APP_ROLE}@", 1)


@contextmanager
def _database(server: EmbeddedPostgres, *, template: str) -> Iterator[str]:
    """A database that lasts as long as the fixture that asked for it."""
    name = f"test_{uuid4().hex}"
    # Copied file by file: a third of the CPU of writing each page to the log.
    asyncio.run(_execute(server.dsn, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY"))
    yield server.dsn_of(name)
    # By force: a test that failed may have left its connections open.
    asyncio.run(_execute(server.dsn, f"DROP DATABASE {name} WITH (FORCE)"))


async def _execute(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
