"""Calls over kept connections, against a real server that answers as it is told."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from gpudev.adapters.kubernetes.connection import Connection, Unanswered, find_proxy, open_connection
from gpudev.adapters.kubernetes.kubeconfig import Kubeconfig, TokenFile
from gpudev.domain.errors import ClusterUnavailable
from gpudev.texts.fact import fact
from tests.support.http_proxy import running_http_proxy
from tests.support.kubernetes.certificates import write_certificates
from tests.support.scripted_http import OK, Counting, Script, connected, read_request, serving

pytestmark = pytest.mark.anyio

CHUNKS = b"3\r\nin \r\n6\r\npieces\r\n0\r\n\r\n"


@asynccontextmanager
async def connecting(script: Script) -> AsyncIterator[Connection]:
    async with serving(script) as server, connected(server) as connection:
        yield connection


async def test_calls_one_after_the_other_share_a_connection() -> None:
    script = Counting()
    async with connecting(script) as connection:
        for _ in range(3):
            assert (await connection.call("POST", "/api", content={"a": 1})).json == {}
    assert script.connections == 1
    assert [request.endswith(b'\r\n\r\n{"a":1}') for request in script.requests] == [True] * 3


async def test_calls_at_once_have_a_connection_each() -> None:
    script = Counting()
    async with connecting(script) as connection:
        await asyncio.gather(*(connection.call("GET", "/api") for _ in range(3)))
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
    async with connecting(script) as connection:
        for _ in range(2):
            assert (await connection.call("GET", "/api")).json == {}
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
    async with connecting(Counting(b"HTTP/1.1 200 OK\r\n" + answer, then_close=True)) as connection:
        assert (await connection.call("GET", "/api")).content == b"in pieces"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nin", id="less than it says"),
        pytest.param(b"SSH-2.0-OpenSSH\r\n\r\n", id="another language"),
    ],
)
async def test_an_answer_that_is_none_is_an_error_of_the_transport(answer: bytes) -> None:
    async with connecting(Counting(answer, then_close=True)) as connection:
        with pytest.raises(Unanswered):
            await connection.call("GET", "/api")


async def test_a_server_that_says_nothing_is_not_waited_for_for_ever() -> None:
    async def say_nothing(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with connecting(say_nothing) as connection:
        with pytest.raises(Unanswered) as caught:
            await connection.call("GET", "/api")
    assert caught.value.is_timeout
    assert caught.value.why == fact("answer_timeout")


async def test_nobody_there_is_an_error_of_the_transport() -> None:
    async with serving(Counting()) as server:
        pass
    async with connected(server) as connection:
        with pytest.raises(Unanswered) as caught:
            await connection.call("GET", "/api")
    assert not caught.value.is_timeout


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

    async with connecting(answer_late_at_first) as connection:
        given_up = asyncio.create_task(connection.call("GET", "/first"))
        await heard.wait()
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        assert (await connection.call("GET", "/second")).json == {}
    assert script.requests[0].startswith(b"GET /second")


async def test_a_call_that_outlives_its_client_leaves_no_connection_open() -> None:
    asked, ended = asyncio.Event(), asyncio.Event()

    async def never_answer(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        asked.set()
        await reader.read()
        ended.set()

    async with serving(never_answer) as server:
        async with connected(server, seconds=30) as connection:
            call = asyncio.create_task(connection.call("GET", "/"))
            await asked.wait()
        with pytest.raises(Unanswered):
            await call
        async with asyncio.timeout(10):
            await ended.wait()
        with pytest.raises(ClusterUnavailable):
            await connection.call("GET", "/")


async def test_a_redirect_is_not_followed() -> None:
    script = Counting(b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n")
    async with connecting(script) as connection:
        assert (await connection.call("GET", "/api")).status == 302
    assert len(script.requests) == 1


async def test_a_token_that_is_refused_is_read_again_once(tmp_path: Path) -> None:
    tokens = tmp_path / "token"
    tokens.write_text("old\n")
    seen: list[bytes] = []

    async def accept_new(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not reader.at_eof():
            try:
                request = await read_request(reader)
            except asyncio.IncompleteReadError:
                return
            seen.append(next(line for line in request.split(b"\r\n") if line.startswith(b"Authorization")))
            tokens.write_text("new\n")
            refused = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"
            writer.write(OK if seen[-1].endswith(b"Bearer new") else refused)

    async with serving(accept_new) as server, connected(server, TokenFile(tokens)) as connection:
        assert (await connection.call("GET", "/api")).status == 200
        assert (await connection.call("GET", "/api")).status == 200
    assert seen == [b"Authorization: Bearer old", *[b"Authorization: Bearer new"] * 2]


async def test_who_is_refused_again_gets_the_refusal(tmp_path: Path) -> None:
    tokens = tmp_path / "token"
    tokens.write_text("wrong")
    script = Counting(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
    async with serving(script) as server, connected(server, TokenFile(tokens)) as connection:
        assert (await connection.call("GET", "/api")).status == 401
    assert len(script.requests) == 2


@asynccontextmanager
async def serving_with_tls(folder: Path, *, wants_certificate: bool = False) -> AsyncIterator[int]:
    """The port of a server with the certificates in the folder; it answers one request a connection."""
    write_certificates(folder, (IPv4Address("127.0.0.1"),))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "api-server.crt", folder / "api-server.key")
    if wants_certificate:
        context.load_verify_locations(folder / "ca.crt")
        context.verify_mode = ssl.CERT_REQUIRED

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            await read_request(reader)
            writer.write(OK)
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as server:
        yield server.sockets[0].getsockname()[1]


async def test_a_client_proves_itself_by_its_certificate(tmp_path: Path) -> None:
    user = {"client-certificate": "api-server.crt", "client-key": "api-server.key"}
    async with serving_with_tls(tmp_path, wants_certificate=True) as port:
        cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": "ca.crt"}
        async with open_connection(Kubeconfig(cluster, user, tmp_path)) as connection:
            assert (await connection.call("GET", "/api")).json == {}
        async with open_connection(Kubeconfig(cluster, {}, tmp_path)) as connection:
            with pytest.raises(Unanswered):
                await connection.call("GET", "/api")
        stranger = {"server": cluster["server"]}
        async with open_connection(Kubeconfig(stranger, user, tmp_path)) as connection:
            with pytest.raises(Unanswered, match="certificate verify failed"):
                await connection.call("GET", "/api")


async def test_a_call_goes_through_the_proxy_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_http_proxy() as proxy:
        proxy.login = "name:password"
        async with serving_with_tls(tmp_path) as port:
            proxy.routes["kubernetes.default.svc"] = port
            monkeypatch.setenv("https_proxy", proxy.url)
            monkeypatch.delenv("no_proxy", raising=False)
            monkeypatch.delenv("NO_PROXY", raising=False)
            cluster = {"server": "https://kubernetes.default.svc", "certificate-authority": "ca.crt"}
            async with open_connection(Kubeconfig(cluster, {}, tmp_path)) as connection:
                assert (await connection.call("GET", "/api")).json == {}
    assert proxy.asked[-1] == "CONNECT kubernetes.default.svc:443 HTTP/1.1"


@pytest.mark.parametrize(
    "environment,proxy",
    [
        pytest.param({}, None, id="none"),
        pytest.param({"https_proxy": "http://proxy.test:1"}, "http://proxy.test:1", id="of the scheme"),
        pytest.param({"all_proxy": "http://proxy.test:1"}, "http://proxy.test:1", id="of all"),
        pytest.param({"http_proxy": "http://proxy.test:1"}, None, id="of another scheme"),
        pytest.param(
            {"https_proxy": "http://proxy.test:1", "no_proxy": "cluster.test"}, None, id="not for this host"
        ),
    ],
)
def test_a_proxy_is_that_of_the_environment(
    environment: dict[str, str], proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert find_proxy("https://cluster.test:6443") == proxy
