"""The server of the embedded PostgreSQL: it starts, it answers, it comes back, and it loses nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from pathlib import Path

import asyncpg
import pytest

from gpudev.adapters.local.database.embedded_postgres import EmbeddedPostgres, PostgresOptions, TcpAccess
from gpudev.domain.errors import StoreUnavailable
from tests.support.postgres_process import (
    DEADLINE_S,
    is_private,
    parent_process,
    query,
    ready_server_of,
    until,
    until_gone,
)

pytestmark = pytest.mark.anyio

# What asyncpg raises when the server goes away, depending on what it was doing; the last is its own slip.
BROKEN = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, asyncpg.InternalClientError)


async def test_the_first_start_makes_a_private_database_that_answers(new_folder: Path) -> None:
    async with EmbeddedPostgres(new_folder) as server:
        assert await query(server.dsn, "SELECT 'ready'") == "ready"
        assert await query(server.dsn, "SHOW fsync") == "on"
    assert is_private(new_folder)
    assert is_private(new_folder / "data")


async def test_it_listens_on_no_network_port(folder: Path) -> None:
    async with EmbeddedPostgres(folder) as server:
        assert await query(server.dsn, "SHOW listen_addresses") == ""


async def test_text_is_utf8_and_sorted_the_same_on_every_machine(folder: Path) -> None:
    async with EmbeddedPostgres(folder) as server:
        assert await query(
            server.dsn, "SELECT string_agg(x, '' ORDER BY x) FROM unnest('{b,ä,B,a}'::text[]) x"
        ) == ("Babä")
        assert await query(server.dsn, "SELECT upper('ä')") == "Ä"


async def test_a_later_start_finds_what_was_written(folder: Path) -> None:
    async with EmbeddedPostgres(folder) as server:
        await query(server.dsn, "CREATE TABLE kept AS SELECT 42 AS answer")
    async with EmbeddedPostgres(folder) as server:
        assert await query(server.dsn, "SELECT answer FROM kept") == 42


async def test_the_address_is_the_same_after_every_start(folder: Path) -> None:
    server = EmbeddedPostgres(folder)
    async with server:
        address = server.dsn
    async with server:
        assert server.dsn == address == EmbeddedPostgres(folder).dsn


async def test_starting_a_running_server_changes_nothing(folder: Path) -> None:
    async with EmbeddedPostgres(folder) as server:
        pid = server.pid
        await server.start()
        assert server.pid == pid


async def test_stop_ends_the_server_with_its_sessions(folder: Path) -> None:
    server = EmbeddedPostgres(folder)
    await server.start()
    session = await asyncpg.connect(server.dsn)
    pid = server.pid
    await server.stop()
    assert pid is not None
    until_gone(pid)
    assert server.pid is None
    with pytest.raises(BROKEN):
        await session.fetchval("SELECT 1")
    session.terminate()


async def test_stopping_twice_or_before_the_start_is_fine(folder: Path) -> None:
    server = EmbeddedPostgres(folder)
    await server.stop()
    await server.start()
    await server.stop()
    await server.stop()


async def test_wait_tells_that_the_server_was_killed(folder: Path) -> None:
    async with EmbeddedPostgres(folder) as server:
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        assert await server.wait() == -signal.SIGKILL
        assert server.pid is None


async def test_a_server_killed_during_writes_comes_back_with_all_that_was_committed(folder: Path) -> None:
    async with EmbeddedPostgres(folder) as server:
        await query(server.dsn, "CREATE TABLE written (number integer PRIMARY KEY)")
        committed: list[int] = []
        writer = asyncio.create_task(write_until_it_breaks(server.dsn, committed))
        await until(lambda: len(committed) > 100)
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        await writer
        await server.wait()

        await server.start()
        found = await query(server.dsn, "SELECT array_agg(number) FROM written")
        assert isinstance(found, list)
        assert set(committed) <= set(found)


async def write_until_it_breaks(dsn: str, committed: list[int]) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        for number in range(1_000_000):
            await connection.execute("INSERT INTO written VALUES ($1)", number)
            committed.append(number)
    except BROKEN:
        connection.terminate()


async def test_a_supervised_server_is_started_again_until_it_is_stopped(folder: Path) -> None:
    async with EmbeddedPostgres(folder) as server:
        supervision = asyncio.create_task(server.supervise())
        for _ in range(2):
            killed = server.pid
            assert killed is not None
            os.kill(killed, signal.SIGKILL)
            await until(lambda killed=killed: server.pid not in {None, killed})  # type: ignore[misc]
            await server.start()  # waits its turn behind the start in progress
            assert await query(server.dsn, "SELECT 1") == 1
        await server.stop()
        async with asyncio.timeout(DEADLINE_S):
            await supervision


def read_log(folder: Path) -> str:
    return (folder / "postgres.log").read_text()


def move(file: Path, target: Path) -> Path:
    return file.rename(target)


async def test_a_supervised_server_that_cannot_start_for_a_while_is_tried_again(folder: Path) -> None:
    """A disk that is full, say; here a file is missing until somebody puts it back."""
    async with EmbeddedPostgres(folder) as server:
        supervision = asyncio.create_task(server.supervise())
        needed = folder / "data" / "PG_VERSION"
        aside = move(needed, folder / "aside")
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        await until(lambda: "PG_VERSION" in read_log(folder))
        move(aside, needed)
        await until(lambda: server.pid is not None)
        await server.start()
        assert await query(server.dsn, "SELECT 1") == 1
        await server.stop()
        async with asyncio.timeout(DEADLINE_S):
            await supervision


async def test_the_server_ends_when_its_parent_is_killed_and_the_next_start_works(folder: Path) -> None:
    with parent_process(folder) as parent:
        pid = ready_server_of(parent)
        parent.kill()
        until_gone(pid)
    async with EmbeddedPostgres(folder) as server:
        assert await query(server.dsn, "SELECT 1") == 1


async def test_a_start_waits_for_the_server_of_a_killed_parent(folder: Path) -> None:
    with parent_process(folder) as parent:
        pid = ready_server_of(parent)
        os.kill(pid, signal.SIGSTOP)  # it cannot shut down yet, as if it had much to write
        parent.kill()
        parent.wait()
        server = EmbeddedPostgres(folder)
        start = asyncio.create_task(server.start())
        try:
            done, _ = await asyncio.wait({start}, timeout=0.2)
            assert not done
        finally:
            os.kill(pid, signal.SIGCONT)
        await start
        assert await query(server.dsn, "SELECT 1") == 1
        await server.stop()


async def test_a_start_that_is_cancelled_leaves_nothing_running(new_folder: Path) -> None:
    server = EmbeddedPostgres(new_folder)
    start = asyncio.create_task(server.start())
    await until(new_folder.exists)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert server.pid is None
    async with server:
        assert await query(server.dsn, "SELECT 1") == 1


async def test_a_start_that_fails_says_what_postgresql_said(folder: Path) -> None:
    (folder / "data" / "PG_VERSION").write_text("9.6\n")
    server = EmbeddedPostgres(folder)
    with pytest.raises(StoreUnavailable, match="database files are incompatible with server") as failure:
        await server.start()
    assert "postgres.log" in failure.value.hint
    assert server.pid is None


async def test_over_tcp_a_password_is_asked(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    tcp = TcpAccess("127.0.0.1", port, password="it's a 'secret'")
    async with EmbeddedPostgres(folder, PostgresOptions(tcp=tcp)) as server:
        assert await query(server.dsn, "SELECT 1") == 1
        session = await asyncpg.connect(
            host=tcp.host, port=port, user="gpudev", database="postgres", password=tcp.password
        )
        await session.close()
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(
                host=tcp.host, port=port, user="gpudev", database="postgres", password="wrong"
            )


def test_the_password_is_not_shown() -> None:
    assert "secret" not in repr(PostgresOptions(tcp=TcpAccess("localhost", 5432, "secret")))
