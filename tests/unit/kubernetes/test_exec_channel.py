"""How the end of a program in a container is told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl, urlsplit

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.typing import Subprotocol

from gpudev.adapters.kubernetes.connection import Connection
from gpudev.adapters.kubernetes.exec_channel import ExecResult, ExecTarget, read_exit_code, run_program
from gpudev.domain.errors import ClusterUnavailable
from tests.support.scripted_http import Counting, connected, serving

TARGET = ExecTarget("/api/v1/namespaces/gpu-dev/pods/p", "main")
SUCCESS = b"\3" + json.dumps({"status": "Success"}).encode()


@asynccontextmanager
async def container(program: Callable[[ServerConnection], Awaitable[None]]) -> AsyncIterator[Connection]:
    """An API server whose pod runs this program."""
    protocols = [Subprotocol("v4.channel.k8s.io")]
    async with serve(program, "127.0.0.1", 0, subprotocols=protocols) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        async with connected(f"http://127.0.0.1:{port}") as connection:
            yield connection


def test_success_is_zero() -> None:
    assert read_exit_code({"status": "Success"}) == 0


def test_another_end_has_its_code() -> None:
    causes = [{"reason": "ExitCode", "message": "3"}]
    assert read_exit_code({"status": "Failure", "details": {"causes": causes}}) == 3


def test_a_program_that_did_not_run_is_no_end() -> None:
    with pytest.raises(ClusterUnavailable, match="container not found"):
        read_exit_code({"status": "Failure", "message": "container not found", "reason": "InternalError"})


@pytest.mark.anyio
async def test_a_program_gets_its_input_and_its_output_comes_back() -> None:
    asked: list[tuple[str, str]] = []

    async def echo(session: ServerConnection) -> None:
        assert session.request is not None
        asked.extend(parse_qsl(urlsplit(session.request.path).query))
        said = await session.recv()
        assert isinstance(said, bytes)
        for message in (b"\1", b"\1out ", b"\2err", b"", b"\1" + said[1:], b"\4?", SUCCESS):
            await session.send(message)

    async with container(echo) as connection:
        ran = await run_program(connection, TARGET, ("sh", "-c", "a b&c=+"), b"in")
    assert ran == ExecResult(0, "out in", "err")
    assert asked[0] == ("container", "main")
    assert [value for name, value in asked if name == "command"] == ["sh", "-c", "a b&c=+"]


@pytest.mark.anyio
async def test_a_long_output_is_cut() -> None:
    async def say_much(session: ServerConnection) -> None:
        for _ in range(5):
            await session.send(b"\1" + b"x" * 20_000)
        await session.send(SUCCESS)

    async with container(say_much) as connection:
        ran = await run_program(connection, TARGET, ("yes",), b"")
    assert len(ran.out) == 64 * 1024


@pytest.mark.anyio
async def test_a_session_that_ends_before_the_program_is_no_end() -> None:
    async def hang_up(session: ServerConnection) -> None:
        await session.send(b"\1begun")

    async with container(hang_up) as connection:
        with pytest.raises(ClusterUnavailable, match="could not be run"):
            await run_program(connection, TARGET, ("sleep",), b"")


@pytest.mark.anyio
async def test_a_session_that_is_refused_says_with_which_status() -> None:
    script = Counting(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
    async with serving(script) as server, connected(server) as connection:
        with pytest.raises(ClusterUnavailable, match="status 403"):
            await run_program(connection, TARGET, ("true",), b"")
