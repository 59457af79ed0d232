"""Calls over kept connections, against a real server that answers as it is told."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx2
import pytest

from gpudev.adapters.kubernetes.direct_transport import DirectTransport

pytestmark = pytest.mark.anyio

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
CHUNKS = b"3\r\nin \r\n6\r\npieces\r\n0\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@asynccontextmanager
async def serving(script: Script) -> AsyncIterator[httpx2.AsyncClient]:
    """A client whose server does with each connection what the script says."""
    answering: set[asyncio.Task[None]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        answering.add(task)
        try:
            await script(reader, writer)
        finally:
            writer.close()
            answering.discard(task)

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    transport = DirectTransport(ssl.create_default_context())
    client = httpx2.AsyncClient(transport=transport, base_url=f"http://127.0.0.1:{port}", timeout=0.5)
    async with server, client:
        yield client
        for task in tuple(answering):
            task.cancel()
        await asyncio.gather(*answering, return_exceptions=True)


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


async def test_calls_one_after_the_other_share_a_connection() -> None:
    script = Counting()
    async with serving(script) as client:
        for _ in range(3):
            assert (await client.post("/api", content=b"body")).json() == {}
    assert script.connections == 1
    assert [request.endswith(b"\r\n\r\nbody") for request in script.requests] == [True] * 3


async def test_calls_at_once_have_a_connection_each() -> None:
    script = Counting()
    async with serving(script) as client:
        await asyncio.gather(*(client.get("/api") for _ in range(3)))
    assert script.connections == 3


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}", id="said so"),
        pytest.param(OK, id="said nothing"),
    ],
)
async def test_a_connection_that_the_server_closed_is_not_used_again(answer: bytes) -> None:
    script = Counting(answer, then_close=True)
    async with serving(script) as client:
        for _ in range(2):
            assert (await client.get("/api")).json() == {}
            await script.closed.wait()
            script.closed.clear()
            await _read_what_has_arrived()
    assert script.connections == 2


async def _read_what_has_arrived() -> None:
    """The loop looks at its sockets in every round."""
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"Content-Length: 9\r\n\r\nin pieces", id="with its length"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS, id="in chunks"),
        pytest.param(b"Connection: close\r\n\r\nin pieces", id="to the end of the connection"),
        pytest.param(
            b"Content-Encoding: gzip\r\nConnection: close\r\n\r\n" + gzip.compress(b"in pieces"),
            id="compressed",
        ),
    ],
)
async def test_a_body_comes_whole_however_it_is_sent(answer: bytes) -> None:
    async with serving(Counting(b"HTTP/1.1 200 OK\r\n" + answer, then_close=True)) as client:
        assert (await client.get("/api")).text == "in pieces"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nin", id="less than it says"),
        pytest.param(b"SSH-2.0-OpenSSH\r\n\r\n", id="another language"),
    ],
)
async def test_an_answer_that_is_none_is_an_error_of_the_transport(answer: bytes) -> None:
    async with serving(Counting(answer, then_close=True)) as client:
        with pytest.raises(httpx2.RemoteProtocolError):
            await client.get("/api")


async def test_a_server_that_says_nothing_is_not_waited_for_for_ever() -> None:
    async def say_nothing(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with serving(say_nothing) as client:
        with pytest.raises(httpx2.ReadTimeout):
            await client.get("/api")


async def test_nobody_there_is_an_error_of_the_transport() -> None:
    async with serving(Counting()) as client:
        port = client.base_url.port
    transport = DirectTransport(ssl.create_default_context())
    async with httpx2.AsyncClient(transport=transport, base_url=f"http://127.0.0.1:{port}") as client:
        with pytest.raises(httpx2.ConnectError):
            await client.get("/api")


async def test_a_call_that_was_given_up_leaves_no_half_read_connection_behind() -> None:
    heard = asyncio.Event()
    script = Counting()

    async def answer_late_at_first(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not heard.is_set():
            await read_request(reader)
            heard.set()
            await reader.read()
            return
        await script(reader, writer)

    async with serving(answer_late_at_first) as client:
        given_up = asyncio.create_task(client.get("/first"))
        await heard.wait()
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        assert (await client.get("/second")).json() == {}
    assert script.requests[0].startswith(b"GET /second")


async def test_a_call_that_outlives_its_client_leaves_no_connection_open() -> None:
    asked, closed, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def answer_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        asked.set()
        await closed.wait()
        writer.write(OK)
        await reader.read()
        ended.set()

    async with serving(answer_late) as client:
        call = asyncio.create_task(client.get("/"))
        await asked.wait()
        await client.aclose()
        closed.set()
        assert (await call).status_code == 200
        async with asyncio.timeout(10):
            await ended.wait()
