"""The loop under every controller: what is woken gets its turn, and gives others theirs."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from gpudev.app.controllers.loop import Loop

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
