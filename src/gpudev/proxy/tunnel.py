"""One tunnel: a WebSocket on one side, the SSH port of a dev server on the other."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import structlog
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from gpudev.app.reservations.ssh_destination import Destination
from gpudev.telemetry import TUNNEL_BYTES, TUNNEL_ENDS
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say
from gpudev.wire.tunnel import END_OF_STREAM, NO_SERVER

_log = structlog.get_logger(__name__)

CHUNK = 256 * 1024
_CONNECT_SECONDS = 10.0
_TO_SERVER = TUNNEL_BYTES.labels("to_server")
_TO_CLIENT = TUNNEL_BYTES.labels("to_client")


class Tunnel(ServerConnection):
    """Has a destination as soon as its request is granted; `touched_at` is when something last passed."""

    destination: Destination | None = None
    touched_at: float = 0.0
    ended_for: str = "closed"
    opened_at: float = 0.0
    bytes_to_server: int = 0
    bytes_to_client: int = 0
    is_over: bool = False
    """From then on nothing more passes, however long the client takes to close."""

    async def run(self) -> None:
        """Until both directions have ended, or either side is gone."""
        if self.destination is None:
            raise RuntimeError("A tunnel that nobody was granted.")
        self.touch()
        self.opened_at = self.touched_at
        server = await self._reach(self.destination)
        if server is None:
            return
        try:
            await self._relay(server)
        finally:
            server.writer.transport.abort()
            TUNNEL_ENDS.labels(self.ended_for).inc()

    def touch(self) -> None:
        self.touched_at = self.loop.time()

    def describe(self) -> str:
        """What passed through it until now, for the audit log."""
        seconds = self.loop.time() - self.opened_at
        passed = fact(
            "tunnel_passed",
            seconds=seconds,
            to_server=self.bytes_to_server,
            to_client=self.bytes_to_client,
            why=self.ended_for,
        )
        return say(passed)

    async def end(self, code: int, why: str, sentence: str) -> None:
        """For a reason of ours, which the user is told."""
        self.ended_for, self.is_over = why, True
        await self.close(code, sentence)

    async def _reach(self, destination: Destination) -> _Server | None:
        address = destination.address
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(address.host, address.port, limit=CHUNK)
        except (OSError, TimeoutError) as error:
            _log.warning("server_not_reached", reservation=destination.reservation_id, error=str(error))
            TUNNEL_ENDS.labels("no_server").inc()
            self.ended_for = "no_server"
            await self.close(NO_SERVER, say(fact("tunnel_without_server")))
            return None
        return _Server(reader, writer)

    async def _relay(self, server: _Server) -> None:
        """A side that is gone, rather than at its end, takes the other with it."""
        directions = {asyncio.create_task(way) for way in (self._to_server(server), self._to_client(server))}
        try:
            while directions:
                done, directions = await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
                failures = [failure for task in done if (failure := task.exception())]
                if any(not isinstance(failure, OSError | ConnectionClosed) for failure in failures):
                    raise failures[0]
                if failures:
                    return
        finally:
            for task in directions:
                task.cancel()
            await asyncio.gather(*directions, return_exceptions=True)

    async def _to_server(self, server: _Server) -> None:
        while True:
            message = await self.recv()
            if message == END_OF_STREAM:
                server.writer.write_eof()
                return
            if isinstance(message, str) or self.is_over:
                continue
            self.touch()
            server.writer.write(message)
            _TO_SERVER.inc(len(message))
            self.bytes_to_server += len(message)
            await server.writer.drain()

    async def _to_client(self, server: _Server) -> None:
        while data := await server.reader.read(CHUNK):
            self.touch()
            await self.send(data)
            _TO_CLIENT.inc(len(data))
            self.bytes_to_client += len(data)
        await self.send(END_OF_STREAM)


@dataclass(frozen=True, slots=True)
class _Server:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
