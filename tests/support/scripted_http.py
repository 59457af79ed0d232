"""A small HTTP server that does with each connection what a script says, and a connection of ours to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp

from gpudev.adapters.kubernetes.connection import Connection
from gpudev.adapters.kubernetes.kubeconfig import Credentials, Fixed

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
NOBODY = Fixed("")


@asynccontextmanager
async def serving(script: Script) -> AsyncIterator[str]:
    """Its address; whatever is still connected at the end is cut off."""
    at_work: set[asyncio.Task[None]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        at_work.add(task)
        try:
            await script(reader, writer)
        finally:
            writer.close()
            at_work.discard(task)

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for task in tuple(at_work):
            task.cancel()
        await asyncio.gather(*at_work, return_exceptions=True)


@asynccontextmanager
async def connected(
    server: str, credentials: Credentials = NOBODY, seconds: float = 0.5
) -> AsyncIterator[Connection]:
    async with aiohttp.ClientSession() as http:
        yield Connection(http, server, credentials, seconds)


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next((line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), b":0")
    return head + await reader.readexactly(int(length.split(b":")[1]))


class Counting:
    """Answers every request alike, and counts the connections."""

    def __init__(self, answer: bytes = OK, *, then_close: bool = False) -> None:
        self.connections = 0
        self.requests: list[bytes] = []
        self._answer = answer
        self._then_close = then_close
        self.closed = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while True:
            try:
                self.requests.append(await read_request(reader))
            except asyncio.IncompleteReadError:
                return
            writer.write(self._answer)
            await writer.drain()
            if self._then_close:
                writer.close()
                await writer.wait_closed()
                self.closed.set()
                return
