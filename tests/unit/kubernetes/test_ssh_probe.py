"""Asking a dev server whether it answers: only where there is somebody to ask."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gpudev.adapters.kubernetes import ssh_probe
from gpudev.adapters.kubernetes.config import Reach
from gpudev.adapters.kubernetes.ssh_probe import Addresses, wait_for_answer
from gpudev.domain.server import SshAddress

pytestmark = pytest.mark.anyio

NOWHERE = Addresses(None, None)


class Pod:
    """What is known of its addresses, and how often that was asked."""

    def __init__(self) -> None:
        self.known = NOWHERE
        self.looks = 0
        self.news = asyncio.Event()

    def look(self) -> Addresses:
        self.looks += 1
        return self.known

    def get_address(self, port: int) -> None:
        self.known = Addresses(None, SshAddress("127.0.0.1", port))
        self.news.set()


async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-test\r\n")
    await writer.drain()
    writer.close()


async def test_without_an_address_it_waits_for_news_and_then_asks() -> None:
    pod = Pod()
    async with asyncio.timeout(10), await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        waiting = asyncio.create_task(wait_for_answer(Reach.POD, pod.look, pod.news))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(waiting), 0.1)
        assert pod.looks == 1
        pod.get_address(server.sockets[0].getsockname()[1])
        await waiting
    assert pod.looks == 2


async def test_news_that_came_before_the_first_look_is_not_lost() -> None:
    pod = Pod()
    async with asyncio.timeout(10), await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        pod.get_address(server.sockets[0].getsockname()[1])
        await wait_for_answer(Reach.POD, pod.look, pod.news)


@asynccontextmanager
async def door(*, is_open: bool) -> AsyncIterator[tuple[SshAddress, asyncio.Queue[bytes]]]:
    """An address, and what was said there so far to those who knocked."""
    said: asyncio.Queue[bytes] = asyncio.Queue()

    async def speak(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        words = b"SSH-2.0-test\r\n" if is_open else b""
        said.put_nowait(words)
        writer.write(words)
        writer.close()

    async with await asyncio.start_server(speak, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        yield SshAddress(host, port), said


async def test_users_address_is_left_alone_until_the_pod_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_probe, "_SECONDS_AFTER_NO", math.inf)
    pod = Pod()
    async with (
        asyncio.timeout(10),
        door(is_open=False) as (closed, asked),
        door(is_open=True) as (user, heard),
    ):
        pod.known = Addresses(user, closed)
        waiting = asyncio.create_task(wait_for_answer(Reach.AUTO, pod.look, pod.news))
        for _ in range(3):
            await asked.get()
        assert heard.empty()
        async with door(is_open=True) as (open_now, _):
            pod.known = Addresses(user, open_now)
            await waiting
    assert heard.qsize() == 1


async def test_where_the_pods_address_says_no_for_good_the_users_decides() -> None:
    """As where a firewall refuses in the name of the pod."""
    pod = Pod()
    async with asyncio.timeout(10), door(is_open=False) as (closed, _), door(is_open=True) as (user, heard):
        pod.known = Addresses(user, closed)
        await wait_for_answer(Reach.AUTO, pod.look, pod.news)
    assert heard.qsize() == 1


async def test_by_the_users_address_alone_it_waits_until_the_pod_has_an_address() -> None:
    pod = Pod()
    async with (
        asyncio.timeout(10),
        door(is_open=True) as (user, heard),
        door(is_open=False) as (closed, asked),
    ):
        pod.known = Addresses(user, None)
        waiting = asyncio.create_task(wait_for_answer(Reach.NODE, pod.look, pod.news))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(waiting), 0.1)
        assert heard.empty()
        pod.known = Addresses(user, closed)
        pod.news.set()
        await waiting
    assert asked.empty()
