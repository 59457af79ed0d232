"""A network that takes its time: what is sent arrives so much later, and what is on its way can be lost."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Distance:
    """Connections to one port of this machine, each way so many seconds long."""

    def __init__(self, port: int, seconds: float) -> None:
        self._port = port
        self._seconds = seconds
        self._writers: list[asyncio.StreamWriter] = []

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers += [writer, there_writer]
        await asyncio.gather(self._delay(reader, there_writer), self._delay(there_reader, writer))

    def cut(self) -> None:
        """Nothing arrives any more, not even what was sent before."""
        for writer in self._writers:
            writer.transport.abort()

    async def _delay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                loop.call_later(self._seconds, writer.write, data)
        loop.call_later(self._seconds, writer.close)


@asynccontextmanager
async def far_away(port: int, seconds: float) -> AsyncIterator[tuple[int, Distance]]:
    """Another port, from which that one is so many seconds away."""
    distance = Distance(port, seconds)
    server = await asyncio.start_server(distance.carry, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], distance
    finally:
        server.close()
        distance.cut()
