"""The chart's two PostgreSQL servers in use: connect to them, wait for them, write without a pause."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import asyncpg

from tests.support.infra.postgres import PASSWORDS, Server

DEADLINE_SECONDS = 60
_GONE = (OSError, asyncpg.PostgresConnectionError, asyncpg.InterfaceError, asyncpg.InternalClientError)
"""How a connection tells that its server is there no longer, at whatever point of a statement that was."""


async def connect(server: Server) -> asyncpg.Connection[asyncpg.Record]:
    """As the control plane does, as soon as the server answers."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            try:
                return await asyncpg.connect(server.dsn, password=PASSWORDS["POSTGRES_PASSWORD"])
            except (OSError, asyncpg.CannotConnectNowError):
                assert server.process is not None
                assert server.process.poll() is None, server.log
                await asyncio.sleep(0.05)


async def until(connection: asyncpg.Connection[asyncpg.Record], question: str) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not await connection.fetchval(question):  # noqa: ASYNC110 - it cannot tell us
            await asyncio.sleep(0.02)


async def start_both(primary: Server, replica: Server) -> asyncpg.Connection[asyncpg.Record]:
    primary.start()
    connection = await connect(primary)
    replica.start()
    async with asyncio.timeout(DEADLINE_SECONDS):
        # Any write will do: it is acknowledged when the replica follows.
        await connection.execute("COMMENT ON DATABASE gpudev IS 'both run'")
    return connection


@dataclass(slots=True)
class Writes:
    """Numbers that a server has acknowledged, each with the moment; the order is that of the answers."""

    acknowledged: dict[int, float] = field(default_factory=dict)
    enough: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, number: int, wanted: int) -> None:
        self.acknowledged[number] = time.perf_counter()
        if len(self.acknowledged) >= wanted:
            self.enough.set()

    def find_lost(self, kept: set[int]) -> set[int]:
        """What was acknowledged and is not there any more."""
        return self.acknowledged.keys() - kept


@asynccontextmanager
async def writing(server: Server, writers: int, wanted: int) -> AsyncIterator[Writes]:
    """So many connections that write until the server is gone; `enough` is set after `wanted` answers."""
    writes = Writes()
    connections = [await connect(server) for _ in range(writers)]
    await connections[0].execute("CREATE TABLE promises (number int)")
    tasks = [
        asyncio.create_task(_write(connection, range(first, 1 << 30, writers), writes, wanted))
        for first, connection in enumerate(connections)
    ]
    try:
        yield writes
    finally:
        await asyncio.gather(*tasks)


async def _write(
    connection: asyncpg.Connection[asyncpg.Record], numbers: range, writes: Writes, wanted: int
) -> None:
    try:
        for number in numbers:
            await connection.execute("INSERT INTO promises VALUES ($1)", number)
            writes.note(number, wanted)
    except _GONE:
        return
    finally:
        connection.terminate()


async def read_promises(server: Server) -> set[int]:
    connection = await connect(server)
    rows = await connection.fetch("SELECT number FROM promises")
    await connection.close()
    return {row["number"] for row in rows}
