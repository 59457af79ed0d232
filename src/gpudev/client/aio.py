"""The client for asyncio: the same calls with the same arguments, awaited.

Each call runs in a thread, so that there is one client to keep right. A call that is cancelled is interrupted
there as well: programs are ended, waits are left, and what was being reserved is given back.

    async with gpudev.aio.reserve("h100", gpus=2) as box:
        print((await box.run("hostname")).stdout)
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar

from gpudev.client import dev_server as sync
from gpudev.client import session
from gpudev.client.config import Surroundings
from gpudev.client.dev_server import Box
from gpudev.client.interruption import Interruption, interrupted_by
from gpudev.client.remote import Remote
from gpudev.client.session import Client
from gpudev.wire.jobs import JobDetail

P = ParamSpec("P")
T = TypeVar("T")

Awaited = Callable[P, Coroutine[Any, Any, T]]

_THREADS = ThreadPoolExecutor(max_workers=256, thread_name_prefix="gpudev")
"""As many as may wait at the same time; they are made when they are needed."""
_NO_MORE = object()


def awaited(call: Callable[P, T], undo: Callable[[T], object] | None = None) -> Awaited[P, T]:
    """The call, in a thread. `undo` is for what was made for a caller who has gone meanwhile."""

    @functools.wraps(call)
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return await _in_thread(Interruption(), functools.partial(call, *args, **kwargs), undo)

    return run


def iterated(call: Callable[P, Iterator[T]]) -> Callable[P, AsyncIterator[T]]:
    """The iterator that the call gives, each step in a thread."""

    @functools.wraps(call)
    async def run(*args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        interruption = Interruption()
        steps = call(*args, **kwargs)
        try:
            while (step := await _in_thread(interruption, lambda: next(steps, _NO_MORE))) is not _NO_MORE:
                yield step  # type: ignore[misc]  # the one object that is no T was just ruled out
        finally:
            await _in_thread(interruption, getattr(steps, "close", lambda: None))

    return run


class AsyncClient:
    """`Client`, awaited. See there for what each call does."""

    def __init__(self, client: Client) -> None:
        self.sync = client
        self.log_in = awaited(client.log_in)
        self.reserve = awaited(client.reserve)
        self.get = awaited(client.get)
        self.list = awaited(client.list)
        self.cancel = awaited(client.cancel)
        self.extend = awaited(client.extend)
        self.keep = awaited(client.keep)
        self.stop = awaited(client.stop)
        self.start = awaited(client.start)
        self.usage = awaited(client.usage)
        self.list_events = awaited(client.list_events)
        self.wait_for_operation = awaited(client.wait_for_operation)
        self.get_operation = awaited(client.get_operation)
        self.availability = awaited(client.availability)
        self.status = awaited(client.status)
        self.preview = awaited(client.preview)
        self.accuracy = awaited(client.accuracy)
        self.queue = awaited(client.queue)
        self.whoami = awaited(client.whoami)
        self.notifications = awaited(client.notifications)
        self.set_notifications = awaited(client.set_notifications)
        self.test_notifications = awaited(client.test_notifications)
        self.list_keys = awaited(client.list_keys)
        self.rotate_key = awaited(client.rotate_key)
        self.revoke_key = awaited(client.revoke_key)
        self.events = iterated(client.events)
        self.logs = iterated(client.logs)
        self.wait_until = awaited(client.wait_until)
        self.wait_until_clean = awaited(client.wait_until_clean)
        self.close = awaited(client.close)
        self.disks = AsyncDisks(client)
        self.nodes = AsyncNodes(client)
        self.dead_letters = AsyncDeadLetters(client)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncDisks:
    """`Disks`, awaited."""

    def __init__(self, client: Client) -> None:
        disks = client.disks
        self.list = awaited(disks.list)
        self.get = awaited(disks.get)
        self.create = awaited(disks.create)
        self.rename = awaited(disks.rename)
        self.clone = awaited(disks.clone)
        self.grow = awaited(disks.grow)
        self.delete = awaited(disks.delete)
        self.restore = awaited(disks.restore)
        self.read_content = awaited(disks.read_content)
        self.list_snapshots = awaited(disks.list_snapshots)
        self.get_operation = awaited(disks.get_operation)
        self.wait_for = awaited(disks.wait_for)


class AsyncNodes:
    """`Nodes`, awaited."""

    def __init__(self, client: Client) -> None:
        nodes = client.nodes
        self.list = awaited(nodes.list)
        self.drain = awaited(nodes.drain)
        self.undrain = awaited(nodes.undrain)


class AsyncDeadLetters:
    """`DeadLetters`, awaited."""

    def __init__(self, client: Client) -> None:
        letters = client.dead_letters
        self.list = awaited(letters.list)
        self.retry = awaited(letters.retry)
        self.drop = awaited(letters.drop)


class AsyncBox:
    """`Box`, awaited. See there for what each call does."""

    def __init__(self, box: Box) -> None:
        self.sync = box
        self.client = AsyncClient(box.client)
        self.run = awaited(box.run)
        self.upload = awaited(box.upload)
        self.download = awaited(box.download)
        self.extend = awaited(box.extend)
        self.refresh = awaited(box.refresh)
        self.release = awaited(box.release)
        self.close = awaited(box.close)

    @property
    def id(self) -> str:
        return self.sync.id

    @property
    def name(self) -> str:
        return self.sync.name

    @property
    def details(self) -> JobDetail:
        return self.sync.details

    @property
    def expires_at(self) -> datetime | None:
        return self.sync.expires_at

    @property
    def nodes(self) -> tuple[Remote, ...]:
        return self.sync.nodes

    @property
    def ssh_config(self) -> Path:
        return self.sync.ssh_config

    @property
    def ssh_host(self) -> str:
        return self.sync.ssh_host

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def connect(surroundings: Surroundings | None = None) -> AsyncClient:
    """A client of the server that the user's configuration names."""
    return AsyncClient(session.connect(surroundings))


def _opened(call: Callable[P, Box]) -> Callable[P, AbstractAsyncContextManager[AsyncBox]]:
    @functools.wraps(call)
    @asynccontextmanager
    async def opened(*args: P.args, **kwargs: P.kwargs) -> AsyncIterator[AsyncBox]:
        async with AsyncBox(await awaited(call, Box.close)(*args, **kwargs)) as box:
            yield box

    return opened


reserve = _opened(sync.reserve)
attach = _opened(sync.attach)


async def _in_thread(
    interruption: Interruption, call: Callable[[], T], undo: Callable[[T], object] | None = None
) -> T:
    def run() -> T:
        with interrupted_by(interruption):
            return call()

    loop = asyncio.get_running_loop()
    future = loop.run_in_executor(_THREADS, run)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        interruption.request()
        await asyncio.wait([future])
        if future.exception() is None and undo is not None:
            await loop.run_in_executor(_THREADS, undo, future.result())
        raise
