"""The boundary of background work: what fails is counted, paused, reported, and stops nothing else."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial

import pytest
from prometheus_client import REGISTRY

from gpudev.app.turns.loop import Chore, working
from gpudev.domain.errors import StoreUnavailable
from gpudev.faults import PERSISTENT_AFTER, Faults

pytestmark = pytest.mark.anyio


def read_metric(name: str, chore: str) -> float:
    return REGISTRY.get_sample_value(name, {"chore": chore}) or 0.0


async def fail() -> None:
    raise ValueError("bad item")


async def test_a_chore_that_always_raises_stops_neither_another_nor_the_process() -> None:
    faults = Faults(first_pause=0.0)
    turns: Counter[str] = Counter()
    done = asyncio.Event()

    async def bad() -> None:
        turns["bad"] += 1
        if turns["bad"] > PERSISTENT_AFTER and turns["good"] > PERSISTENT_AFTER:
            done.set()
        raise RecursionError

    async def good() -> None:
        turns["good"] += 1

    async with working([Chore("bad", bad, 0.0), Chore("good", good, 0.0)], faults), asyncio.timeout(30):
        await done.wait()
    assert faults.list_failing() == ("bad",)


async def test_a_failure_is_counted_and_shown_once_it_persists() -> None:
    faults = Faults(first_pause=0.0)
    before = read_metric("gpu_dev_faults_total", "counted")
    for number in range(1, PERSISTENT_AFTER + 1):
        assert faults.list_failing() == ()
        assert await faults.attempt("counted", fail, "7f3a91c2") is None
        assert read_metric("gpu_dev_faults_total", "counted") == before + number
    assert faults.list_failing() == ("counted",)
    assert read_metric("gpu_dev_failing_items", "counted") == 1


async def test_one_item_is_forgiven_while_another_still_fails() -> None:
    faults = Faults(first_pause=0.0)
    for item in ("a", "b"):
        for _ in range(PERSISTENT_AFTER):
            await faults.attempt("items", fail, item)
    assert read_metric("gpu_dev_failing_items", "items") == 2

    async def succeed() -> str:
        return "done"

    assert await faults.attempt("items", succeed, "a") == "done"
    assert (faults.list_failing(), read_metric("gpu_dev_failing_items", "items")) == (("items",), 1)
    await faults.attempt("items", succeed, "b")
    assert faults.list_failing() == ()


async def test_an_item_that_failed_is_left_alone_for_a_while_and_others_are_not() -> None:
    faults = Faults(first_pause=3600.0)
    tried: list[str] = []

    async def work(item: str) -> None:
        tried.append(item)
        raise StoreUnavailable("words", words="Said by the test.")

    for item in ("a", "a", "b", "a"):
        await faults.attempt("pauses", partial(work, item), item)
    assert tried == ["a", "b"]


async def test_what_has_to_be_done_is_tried_until_it_is() -> None:
    faults = Faults(first_pause=0.0)
    tries = iter([ValueError(), StoreUnavailable("words", words="Said by the test."), None])

    async def work() -> str:
        if error := next(tries):
            raise error
        return "done"

    assert await faults.persist("persistent", work) == "done"
    assert faults.list_failing() == ()


async def test_the_end_of_the_process_is_no_fault() -> None:
    faults = Faults()
    forever = asyncio.create_task(faults.repeat("endless", asyncio.Event().wait, 0.0))
    await asyncio.sleep(0)
    forever.cancel()
    with pytest.raises(asyncio.CancelledError):
        await forever
    assert faults.list_failing() == ()


def test_pauses_grow_up_to_a_limit() -> None:
    faults = Faults(first_pause=1.0, longest_pause=8.0)
    pauses = [faults.note_failure("growing", ValueError()) for _ in range(6)]
    assert all(
        ceiling / 2 <= pause <= ceiling for pause, ceiling in zip(pauses, (1, 2, 4, 8, 8, 8), strict=True)
    )
