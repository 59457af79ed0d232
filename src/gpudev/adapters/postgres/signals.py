"""LISTEN/NOTIFY: one connection of its own, made again whenever it breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import structlog

from gpudev.adapters.postgres.pool import connect
from gpudev.domain.errors import StoreUnavailable
from gpudev.ports.queue import Channel, Signal

_RETRY_SECONDS = 0.1

_log = structlog.get_logger(__name__)


class PostgresSignals:
    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    async def listen(self, *channels: Channel) -> AsyncIterator[Signal | None]:
        """Signals as they come, and None after each new connection: what was missed is not known."""
        while True:
            try:
                connection = await connect(self._dsn)
            except (StoreUnavailable, asyncpg.PostgresError) as error:
                _log.warning("signals_unavailable", error=str(error))
            else:
                try:
                    async for signal in _listen_on(connection, channels):
                        yield signal
                finally:
                    connection.terminate()
            await asyncio.sleep(_RETRY_SECONDS)


async def _listen_on(
    connection: asyncpg.Connection, channels: tuple[Channel, ...]
) -> AsyncIterator[Signal | None]:
    """One connection's signals; ends when it breaks."""
    inbox: asyncio.Queue[Signal | None] = asyncio.Queue()

    def hear(_connection: object, _pid: int, channel: str, payload: object) -> None:
        inbox.put_nowait(Signal(Channel(channel), str(payload)))

    connection.add_termination_listener(lambda _connection: inbox.put_nowait(None))
    try:
        for channel in channels:
            await connection.add_listener(channel, hear)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return
    yield None
    while (signal := await inbox.get()) is not None:
        yield signal
