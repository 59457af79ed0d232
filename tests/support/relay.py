"""A relay of bytes in a thread of its own, for tests that wait for programs meanwhile."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

HOST = "127.0.0.1"
_CHUNK = 1 << 16


@contextmanager
def running_relay(target: Callable[[], int], tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """The port at which each new connection is led to the port that is the target then."""
    started, stop = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []
    ports: list[int] = []
    opened: list[asyncio.WriteTransport] = []

    async def lead_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(writer.transport)
        try:
            inner_reader, inner_writer = await asyncio.open_connection(HOST, target())
        except OSError:
            writer.close()
            return
        opened.append(inner_writer.transport)
        ways = [asyncio.create_task(_copy(*way)) for way in ((reader, inner_writer), (inner_reader, writer))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        inner_writer.close()
        writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(lead_on, HOST, 0, ssl=tls)
        loops.append(asyncio.get_running_loop())
        ports.append(server.sockets[0].getsockname()[1])
        started.set()
        await stop.wait()
        server.close()
        await _end_all_others(opened)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    started.wait()
    try:
        yield ports[0]
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()


async def _end_all_others(opened: list[asyncio.WriteTransport]) -> None:
    """Connections in their TLS handshake are tasks, too; an aborted one takes one more turn of the loop."""
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
    for transport in opened:
        with suppress(AttributeError):  # Python 3.11.2 forgets the protocol of one that was closed twice
            transport.abort()
    await asyncio.sleep(0)
