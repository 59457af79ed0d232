"""Calls to one API server over connections that are kept: each takes one, and gives it back with the answer.

Making a dev server takes three calls, and thousands may be made at once. httpx2's own transport looks at
every connection of its pool for every call, and passes each byte through several layers; with this one a call
takes about half the CPU. It knows no proxies and no streams: those are left to httpx2's own.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import h11
import httpx2
from typing_extensions import override

_READ_BYTES = 64 * 1024
_IDLE_SECONDS = 5.0
"""Something in between may forget an idle connection without a word."""
_PORTS = {"http": 80, "https": 443}


class DirectTransport(httpx2.AsyncBaseTransport):
    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._idle: deque[_Connection] = deque()
        self._is_closed = False

    @override
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        async with self._connection_to(request) as connection:
            answer, body = await connection.call(request)
        return httpx2.Response(
            answer.status_code,
            headers=answer.headers.raw_items(),
            stream=httpx2.ByteStream(body),
            request=request,
        )

    @override
    async def aclose(self) -> None:
        self._is_closed = True
        closing = [self._idle.pop() for _ in range(len(self._idle))]
        await asyncio.gather(*(connection.wait_closed() for connection in closing))

    @asynccontextmanager
    async def _connection_to(self, request: httpx2.Request) -> AsyncIterator[_Connection]:
        """One that failed, or whose call was given up, is not used again."""
        connection = self._find_idle() or await _open(request, self._context)
        can_go_on = False
        try:
            yield connection
            # A call may outlive its client: one that failed together with others leaves those on their way.
            can_go_on = connection.begin_next() and not self._is_closed
        finally:
            if can_go_on:
                self._idle.append(connection)
            else:
                connection.close()

    def _find_idle(self) -> _Connection | None:
        """The one that was used last; the others may rest, and those that have rested too long go."""
        oldest = time.monotonic() - _IDLE_SECONDS
        while self._idle and self._idle[0].used_at < oldest:
            self._idle.popleft().close()
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed_there():
                return connection
            connection.close()
        return None


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._protocol = h11.Connection(h11.CLIENT)
        self.used_at = 0.0

    async def call(self, request: httpx2.Request) -> tuple[h11.Response, bytes]:
        with _translated_errors():
            self._send(request)
            answer = await self._read_answer(request.extensions["timeout"]["read"])
        self.used_at = time.monotonic()
        return answer

    def begin_next(self) -> bool:
        """Make ready for another call; whether there may be one."""
        if self._protocol.our_state is not h11.DONE or self._protocol.their_state is not h11.DONE:
            return False
        self._protocol.start_next_cycle()
        return True

    def is_closed_there(self) -> bool:
        return self._reader.at_eof() or self._writer.is_closing()

    def close(self) -> None:
        """At once: nothing is under way, and a server that is gone would not say good-bye."""
        self._writer.transport.abort()

    async def wait_closed(self) -> None:
        self.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    def _send(self, request: httpx2.Request) -> None:
        """In one piece: a call is small."""
        opening = h11.Request(method=request.method, target=request.url.raw_path, headers=request.headers.raw)
        parts = (opening, h11.Data(data=request.content), h11.EndOfMessage())
        self._writer.write(b"".join(self._protocol.send(part) or b"" for part in parts))

    async def _read_answer(self, seconds: float | None) -> tuple[h11.Response, bytes]:
        answer: h11.Response | None = None
        body: list[bytes] = []
        while True:
            event = self._protocol.next_event()
            if event is h11.NEED_DATA:
                async with asyncio.timeout(seconds):
                    self._protocol.receive_data(await self._reader.read(_READ_BYTES))
            elif isinstance(event, h11.Response):
                answer = event
            elif isinstance(event, h11.Data):
                body.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage) and answer is not None:
                return answer, b"".join(body)


async def _open(request: httpx2.Request, context: ssl.SSLContext) -> _Connection:
    url = request.url
    secret = context if url.scheme == "https" else None
    try:
        async with asyncio.timeout(request.extensions["timeout"]["connect"]):
            port = url.port or _PORTS[url.scheme]
            return _Connection(*await asyncio.open_connection(url.host, port, ssl=secret))
    except TimeoutError as error:
        raise httpx2.ConnectTimeout("") from error
    except OSError as error:
        raise httpx2.ConnectError(str(error)) from error


@contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise httpx2.ReadTimeout("") from error
    except h11.ProtocolError as error:
        raise httpx2.RemoteProtocolError(str(error)) from error
    except OSError as error:
        raise httpx2.ReadError(str(error)) from error
