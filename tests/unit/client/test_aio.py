"""The asyncio face of the client: it has every call, and a cancellation reaches the thread that works."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Iterator

import pytest

from gpudev.client import aio, codec
from gpudev.client.admin import Nodes
from gpudev.client.aio import AsyncBox, AsyncClient, AsyncDisks, AsyncNodes, awaited, iterated
from gpudev.client.dev_server import Box
from gpudev.client.disks import Disks
from gpudev.client.errors import Interrupted, NotFound
from gpudev.client.interruption import Interruption, interrupted_by, pause, stopped_by
from gpudev.client.programs import run_program
from gpudev.client.session import Client, connect
from tests.support.fake_api import FakeApi, Reply
from tests.support.wire_values import ACTIVE, JOB_ID, an_event, as_sse
from tests.unit.client.conftest import Home

pytestmark = pytest.mark.anyio

ONLY_SYNC = {"call", "send", "at_end", "authorisation"}
"""What the parts of the client use among themselves."""


def public_methods(kind: type) -> set[str]:
    functions = inspect.getmembers(kind, inspect.isfunction)
    return {name for name, _ in functions if not name.startswith("_")} - ONLY_SYNC


def public_names(value: object) -> set[str]:
    return {name for name in dir(value) if not name.startswith("_")}


def test_every_call_can_be_awaited(home: Home) -> None:
    client = AsyncClient(connect(home.surroundings))
    assert public_methods(Client) <= public_names(client)
    assert public_methods(Disks) <= public_names(AsyncDisks(client.sync))
    assert public_methods(Nodes) <= public_names(AsyncNodes(client.sync))


def test_a_box_can_be_awaited_whole(home: Home) -> None:
    box = Box(connect(home.surroundings), ACTIVE)
    awaited_box = AsyncBox(box)
    assert public_names(box) - ONLY_SYNC <= public_names(awaited_box)
    for name in ("id", "name", "details", "expires_at", "nodes", "ssh_config", "ssh_host"):
        assert getattr(awaited_box, name) == getattr(box, name)


async def test_answers_and_errors_come_back(api: FakeApi, home: Home) -> None:
    api.on("GET", f"/v1/jobs/{JOB_ID}", Reply(body=codec.encode(ACTIVE)))
    async with aio.connect(home.surroundings) as client:
        jobs = await asyncio.gather(*(client.get(JOB_ID) for _ in range(5)))
        assert [job.name for job in jobs] == ["train"] * 5
        with pytest.raises(NotFound):
            await client.get("nothing")


async def test_events_are_iterated(api: FakeApi, home: Home) -> None:
    events = [an_event(1, "submitted", "pending", "Asked."), an_event(2, "cleaned", "cancelled", "Gone.")]
    api.on("GET", f"/v1/jobs/{JOB_ID}/events", Reply(stream=as_sse(*events)))
    async with aio.connect(home.surroundings) as client:
        seen = [event.kind async for event in client.events(JOB_ID) if event is not None]
    assert seen == ["submitted", "cleaned"]


async def cancel(task: asyncio.Task[object]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 20)


async def test_a_cancelled_wait_leaves_a_silent_stream(api: FakeApi, home: Home) -> None:
    hold = threading.Event()
    started = as_sse(an_event(1, "submitted", "pending", "Asked."))
    api.on("GET", f"/v1/jobs/{JOB_ID}/events", Reply(stream=started, hold=hold))
    heard = asyncio.Event()
    loop = asyncio.get_running_loop()
    async with aio.connect(home.surroundings) as client:
        waiting = client.wait_until(
            JOB_ID, {"active"}, tell=lambda _: loop.call_soon_threadsafe(heard.set) and None
        )
        task: asyncio.Task[object] = asyncio.create_task(waiting)
        await asyncio.wait_for(heard.wait(), 20)
        await cancel(task)
    hold.set()


async def test_a_cancelled_iteration_leaves_a_silent_stream(api: FakeApi, home: Home) -> None:
    hold = threading.Event()
    started = as_sse(an_event(1, "submitted", "pending", "Asked."))
    api.on("GET", f"/v1/jobs/{JOB_ID}/events", Reply(stream=started, hold=hold))
    heard = asyncio.Event()

    async def listen() -> None:
        async with aio.connect(home.surroundings) as client:
            async for _ in client.events(JOB_ID):
                heard.set()

    task: asyncio.Task[object] = asyncio.create_task(listen())
    await asyncio.wait_for(heard.wait(), 20)
    await cancel(task)
    hold.set()


async def test_a_cancelled_program_is_ended() -> None:
    running = threading.Event()

    def sleep_long() -> None:
        with stopped_by(lambda: None):
            running.set()
            run_program(["sleep", "600"])

    task: asyncio.Task[object] = asyncio.create_task(awaited(sleep_long)())
    await asyncio.to_thread(running.wait, 20)
    await cancel(task)


async def test_what_was_made_for_a_caller_who_has_gone_is_undone() -> None:
    running, go_on, undone = threading.Event(), threading.Event(), threading.Event()

    def make() -> str:
        running.set()
        go_on.wait(20)
        return "made"

    task: asyncio.Task[object] = asyncio.create_task(awaited(make, lambda _: undone.set())())
    await asyncio.to_thread(running.wait, 20)
    task.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert undone.is_set()


async def test_a_pause_ends_with_the_call() -> None:
    task: asyncio.Task[object] = asyncio.create_task(awaited(pause)(600))
    await asyncio.sleep(0)
    await cancel(task)


async def test_an_iterator_is_closed_with_its_reader() -> None:
    closed = threading.Event()

    def count() -> Iterator[int]:
        try:
            yield from range(100)
        finally:
            closed.set()

    async for number in iterated(count)():
        if number == 3:
            break
    await asyncio.to_thread(closed.wait, 20)
    assert closed.is_set()


async def test_an_interrupted_call_starts_nothing_more() -> None:
    interruption = Interruption()
    interruption.request()
    with interrupted_by(interruption):
        with pytest.raises(Interrupted):
            pause(600)
        with pytest.raises(Interrupted):
            run_program(["sleep", "600"])
