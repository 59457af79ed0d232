"""The loop under every controller: what is woken gets its turn, and gives others theirs."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from gpudev.app.turns.loop import Loop

pytestmark = pytest.mark.anyio


async def run_until(loop: Loop[str], done: asyncio.Event) -> None:
    task = asyncio.create_task(loop.run())
    async with asyncio.timeout(30):
        await done.wait()
    loop.stop()
    await task


async def test_a_key_that_is_woken_in_its_turn_gets_one_more_however_often_that_is() -> None:
    turns: list[str] = []
    done = asyncio.Event()

    async def turn(key: str) -> None:
        turns.append(key)
        if turns == ["a"]:
            loop.wake("a")
            loop.wake("a")
            loop.wake("b")
        if key == "b":
            done.set()

    loop: Loop[str] = Loop("test", turn)
    loop.wake("a")
    await run_until(loop, done)
    assert sorted(turns) == ["a", "a", "b"]


async def test_a_key_that_rests_lets_others_work_for_as_long_as_its_turn_took() -> None:
    moments: list[tuple[float, float]] = []
    done = asyncio.Event()
    clock = asyncio.get_running_loop()

    async def turn(key: str) -> None:
        began = clock.time()
        await asyncio.sleep(0.05)
        loop.wake(key)
        moments.append((began, clock.time()))
        if len(moments) == 3:
            done.set()

    loop: Loop[str] = Loop("test", turn, rests=True)
    loop.wake("a")
    await run_until(loop, done)
    for before, after in itertools.pairwise(moments):
        assert after[0] - before[1] >= before[1] - before[0]


async def test_what_is_woken_soon_comes_before_all_that_wait_in_line() -> None:
    turns: list[str] = []
    done = asyncio.Event()

    async def turn(key: str) -> None:
        turns.append(key)
        if key == "first":
            loop.wake("soon", soon=True)
        if len(turns) == 4:
            done.set()

    loop: Loop[str] = Loop("test", turn)
    for key in ("first", "second", "third"):
        loop.wake(key)
    await run_until(loop, done)
    assert turns == ["first", "soon", "second", "third"]


async def test_what_waits_in_line_and_is_woken_soon_has_one_turn_and_that_first() -> None:
    turns: list[str] = []
    done = asyncio.Event()

    async def turn(key: str) -> None:
        turns.append(key)
        if key == "last":
            done.set()

    loop: Loop[str] = Loop("test", turn)
    for key in ("first", "second", "last"):
        loop.wake(key)
    loop.wake("second", soon=True)
    loop.wake("second")
    await run_until(loop, done)
    assert turns == ["second", "first", "last"]


async def test_what_is_woken_soon_in_its_turn_has_the_next_one_soon() -> None:
    turns: list[str] = []
    done = asyncio.Event()

    async def turn(key: str) -> None:
        turns.append(key)
        if turns == ["first"]:
            loop.wake("first")
            loop.wake("first", soon=True)
        if key == "last":
            done.set()

    loop: Loop[str] = Loop("test", turn)
    for key in ("first", "second", "last"):
        loop.wake(key)
    await run_until(loop, done)
    assert turns == ["first", "first", "second", "last"]
