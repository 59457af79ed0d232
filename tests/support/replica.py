"""A streaming replica of a test's PostgreSQL, made the way an operator makes one: with pg_basebackup."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg

from gpudev.adapters.local.database.embedded_postgres import EmbeddedPostgres, PostgresOptions
from gpudev.adapters.local.database.postgres_folder import ROLE
from gpudev.adapters.local.database.postgres_programs import ENVIRONMENT, choose_account, find_programs

_HAS_COME_TO = "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn"
OPTIONS = PostgresOptions(durable=False, shared_buffers="16MB", max_connections=20)


@asynccontextmanager
async def primary_and_replica(folder: Path) -> AsyncIterator[tuple[EmbeddedPostgres, EmbeddedPostgres]]:
    """Both running; the replica follows."""
    async with EmbeddedPostgres(folder / "primary", OPTIONS) as primary:
        _allow_replication(folder / "primary" / "pg_hba.conf")
        await _read_rules_again(primary)
        await asyncio.to_thread(_copy, folder / "primary", folder / "replica")
        async with EmbeddedPostgres(folder / "replica", OPTIONS) as replica:
            yield primary, replica


async def catch_up(primary: EmbeddedPostgres, replica: EmbeddedPostgres) -> None:
    """Wait until the replica has all that is in the primary now."""
    leader, follower = await asyncpg.connect(primary.dsn), await asyncpg.connect(replica.dsn)
    try:
        position = await leader.fetchval("SELECT pg_current_wal_insert_lsn()::text")
        async with asyncio.timeout(30):
            while not await follower.fetchval(_HAS_COME_TO, position):  # noqa: ASYNC110 - it cannot tell us
                await asyncio.sleep(0.01)
    finally:
        await leader.close()
        await follower.close()


def _allow_replication(rules: Path) -> None:
    rules.write_text(rules.read_text() + "local replication all trust\n")


async def _read_rules_again(server: EmbeddedPostgres) -> None:
    connection = await asyncpg.connect(server.dsn)
    try:
        await connection.execute("SELECT pg_reload_conf()")
    finally:
        await connection.close()


def _copy(primary: Path, replica: Path) -> None:
    account = choose_account(primary / "data")
    replica.mkdir(mode=0o700)
    data = replica / "data"
    data.mkdir(mode=0o700)
    account.own(data)
    command = [
        *(*account.prefix, str(find_programs() / "pg_basebackup")),
        *("--host", str(primary / "socket"), "--username", ROLE, "--pgdata", str(data)),
        *("--write-recovery-conf", "--checkpoint=fast", "--no-sync"),
    ]
    subprocess.run(command, env=ENVIRONMENT, cwd="/", check=True)
