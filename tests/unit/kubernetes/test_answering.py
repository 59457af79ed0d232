"""Asking a dev server whether it answers: only where there is somebody to ask."""

from __future__ import annotations

import asyncio

import pytest

from gpudev.adapters.kubernetes.answering import Addresses, wait_for_answer
from gpudev.adapters.kubernetes.config import Reach
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
