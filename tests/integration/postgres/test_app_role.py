"""The service connects as a role that owns nothing: what that role may do, and what it may not."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from gpudev.adapters.local.database.postgres_folder import APP_ROLE
from gpudev.adapters.postgres.health import PostgresHealth
from gpudev.adapters.postgres.migrate import AppRole, migrate
from gpudev.adapters.postgres.pool import Database
from gpudev.adapters.postgres.queries import NOUNS, load_queries
from gpudev.domain.errors import Conflict, StoreUnavailable
from tests.support.postgres import as_app

pytestmark = pytest.mark.anyio


@pytest.fixture
async def service(database: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(as_app(database))
    try:
        yield connection
    finally:
        await connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE mine (id integer)",
        "CREATE SCHEMA mine",
        "CREATE FUNCTION mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
        "CREATE ROLE mine",
        "CREATE DATABASE mine",
        "DROP TABLE reservation_records CASCADE",
        "ALTER TABLE api_users ADD COLUMN mine text",
        "ALTER TABLE audit_entries DISABLE TRIGGER ALL",
        "DROP TRIGGER append_only ON audit_entries",
        "DROP FUNCTION refuse_audit_change()",
        "GRANT gpudev TO gpudev_app",
        "SET ROLE gpudev",
        "SET session_replication_role = replica",
        "TRUNCATE api_keys",
        "TRUNCATE audit_entries CASCADE",
        "UPDATE audit_entries SET username = 'innocent'",
        "DELETE FROM audit_entries",
        "UPDATE audit_seals SET hash = ''",
        "DELETE FROM audit_seals",
        "UPDATE audit_digests SET digest = ''",
        "DELETE FROM audit_digests",
        "UPDATE schema_migrations SET checksum = ''",
        "COPY api_users TO PROGRAM 'true'",
    ],
)
async def test_what_it_may_not_do(service: asyncpg.Connection, statement: str) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await service.execute(statement)


async def test_every_statement_of_the_product_is_allowed(service: asyncpg.Connection) -> None:
    """EXPLAIN checks rights as execution does, without a value."""
    for noun in NOUNS:
        queries = load_queries(noun)
        for name in queries:
            try:
                await service.execute(f"EXPLAIN (GENERIC_PLAN) {queries[name]}")
            except asyncpg.InsufficientPrivilegeError as error:
                pytest.fail(f"{noun}.{name}: {error}")


async def test_it_owns_nothing(service: asyncpg.Connection) -> None:
    assert await service.fetchval("SELECT current_user") == APP_ROLE
    owned = await service.fetchval(
        "SELECT count(*) FROM pg_class WHERE pg_has_role(current_user, relowner, 'MEMBER')"
    )
    assert owned == 0


async def test_an_owner_who_may_not_make_the_role_says_what_to_do(empty_database: str) -> None:
    connection = await asyncpg.connect(empty_database)
    try:
        await migrate(connection)
        await connection.execute("DO $$ BEGIN CREATE ROLE plain; EXCEPTION WHEN duplicate_object THEN END $$")
        await connection.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO plain")
        await connection.execute("GRANT CREATE ON SCHEMA public TO plain")
        await connection.execute("SET ROLE plain")
        with pytest.raises(Conflict) as caught:
            await migrate(connection, AppRole("absent"))
    finally:
        await connection.close()
    assert "CREATE ROLE absent LOGIN" in caught.value.hint


async def test_a_service_that_starts_before_it_has_its_rights_waits_for_them(
    database: str, empty_database: str
) -> None:
    """The role exists already, by the migration of another database of the same server."""
    connection = await asyncpg.connect(empty_database)
    async with Database(as_app(empty_database)) as service:
        try:
            await migrate(connection)
            with pytest.raises(StoreUnavailable, match="may not use the schema yet"):
                await PostgresHealth(service).check()
            await migrate(connection, AppRole(APP_ROLE))
            await PostgresHealth(service).check()
        finally:
            await connection.close()


HASH = "SELECT rolpassword FROM pg_authid WHERE rolname = $1"


async def test_the_password_is_set_each_time(empty_database: str) -> None:
    """So that a changed one is in force after the next migration."""
    connection = await asyncpg.connect(empty_database)
    try:
        await migrate(connection, AppRole("rotated", "first"))
        before = await connection.fetchval(HASH, "rotated")
        await migrate(connection, AppRole("rotated", "second"))
        assert before.startswith("SCRAM-SHA-256$")
        assert await connection.fetchval(HASH, "rotated") != before
    finally:
        await connection.close()


async def test_a_role_that_somebody_else_made_keeps_its_password(empty_database: str) -> None:
    """As where an operator of Kubernetes makes the roles, and the owner of the tables makes none."""
    connection = await asyncpg.connect(empty_database)
    try:
        await connection.execute("CREATE ROLE given LOGIN PASSWORD 'theirs'")
        before = await connection.fetchval(HASH, "given")
        await connection.execute("CREATE ROLE plain_owner")
        await connection.execute("GRANT ALL ON SCHEMA public TO plain_owner")
        database = await connection.fetchval("SELECT current_database()")
        await connection.execute(f"ALTER DATABASE {database} OWNER TO plain_owner")
        await connection.execute("SET ROLE plain_owner")
        await migrate(connection, AppRole("given", "ours"))
        await connection.execute("RESET ROLE")
        assert await connection.fetchval(HASH, "given") == before
        assert await connection.fetchval("SELECT has_table_privilege('given', 'api_users', 'INSERT')")
    finally:
        await connection.close()
