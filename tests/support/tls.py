"""TLS before a server on this machine, as a load balancer puts it there."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path

from tests.support.kubernetes.certificates import write_certificates

HOST = "127.0.0.1"
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Certificates:
    """Of an authority that nobody trusts by themselves, and one for this machine's address alone."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Certificates:
        write_certificates(folder, (IPv4Address(HOST),))
        return cls(folder)

    @property
    def authority(self) -> Path:
        return self.folder / "ca.crt"

    def for_server(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.folder / "api-server.crt", self.folder / "api-server.key")
        return context


@dataclass(slots=True)
class _Front:
    """Ends TLS and passes on the bytes, both ways."""

    behind: int
    open: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.open.add(task)
        with suppress(asyncio.CancelledError):
            inner_reader, inner_writer = await asyncio.open_connection(HOST, self.behind)
            there = asyncio.create_task(_copy(reader, inner_writer))
            back = asyncio.create_task(_copy(inner_reader, writer))
            try:
                await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                there.cancel()
                back.cancel()
                await asyncio.gather(there, back, return_exceptions=True)
                inner_writer.close()
                writer.close()
        self.open.discard(task)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()


@contextmanager
def tls_before(port: int, certificates: Certificates) -> Iterator[int]:
    """The port that speaks TLS."""
    front = _Front(port)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def start() -> asyncio.Server:
        return await asyncio.start_server(front.serve, HOST, 0, ssl=certificates.for_server())

    async def stop() -> None:
        server.close()
        for task in (waiting := list(front.open)):
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    server = asyncio.run_coroutine_threadsafe(start(), loop).result()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
