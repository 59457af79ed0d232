"""What a controller does again and again beside its turns, inside the boundary of faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from gpudev.faults import Faults


@dataclass(frozen=True, slots=True)
class Chore:
    name: str
    work: Callable[[], Awaitable[object]]
    every: float = 1.0
    """Seconds from its end to its next start. Work that is meant to go on for ever ends only by a fault."""
    begins_after: float = 0.0


@asynccontextmanager
async def working(chores: Iterable[Chore], faults: Faults) -> AsyncIterator[None]:
    """All of them, beside what is done in this context. One that fails stops neither that nor another."""
    tasks = [asyncio.create_task(_work(chore, faults), name=chore.name) for chore in chores]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _work(chore: Chore, faults: Faults) -> None:
    await asyncio.sleep(chore.begins_after)
    await faults.repeat(chore.name, chore.work, chore.every)
