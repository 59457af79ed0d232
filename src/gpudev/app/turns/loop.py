"""The generic loop under every controller: keys in, turns out.

A key is woken by messages, signals, cluster changes and timers; how often does not matter. In this process
at most one turn a key runs at a time, and a key that is woken during its turn gets another one after it, so
that nothing that happened is missed. Between processes the lease does the same. A key that is woken soon
comes before those that are not: a thousand beginnings must not hold up one end. Chores run beside it,
inside the boundary of faults.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

import structlog

from gpudev.domain.errors import Stale, Unavailable
from gpudev.faults import FAULTS, Faults
from gpudev.telemetry import TURNS

Key = TypeVar("Key", bound=Hashable)

_log = structlog.get_logger(__name__)

_FIRST_RETRY_SECONDS = 0.1
_LAST_RETRY_SECONDS = 10.0
_LONGEST_REST_SECONDS = 0.25

_SOON, _IN_LINE = range(2)


class Loop(Generic[Key]):
    def __init__(
        self,
        name: str,
        turn: Callable[[Key], Awaitable[None]],
        *,
        concurrency: int = 1,
        rests: bool = False,
        faults: Faults = FAULTS,
    ) -> None:
        """With `rests`, a key waits after its turn as long as that took, or a moment: others work, too."""
        self._name = name
        self._turn = turn
        self._concurrency = concurrency
        self._rests = rests
        self._faults = faults
        self._waiting: asyncio.PriorityQueue[tuple[int, int, Key]] = asyncio.PriorityQueue()
        self._numbers = itertools.count()
        self._queued: dict[Key, int] = {}
        self._running: set[Key] = set()
        self._woken_meanwhile: dict[Key, int] = {}
        self._failures: dict[Key, int] = {}
        self._stopping = asyncio.Event()

    def wake(self, key: Key, *, soon: bool = False) -> None:
        """It gets a turn; with `soon`, before all that only wait in line."""
        self._wake(key, _SOON if soon else _IN_LINE)

    def _wake(self, key: Key, place: int) -> None:
        waking = self._woken_meanwhile if key in self._running else self._queued
        if waking.get(key, _IN_LINE + 1) <= place:
            return
        waking[key] = place
        if waking is self._queued:
            # Where it was in line before, it is passed over.
            self._waiting.put_nowait((place, next(self._numbers), key))

    async def run(self) -> None:
        """Take turns until stopped; turns that have begun are finished first."""
        async with asyncio.TaskGroup() as workers:
            for _ in range(self._concurrency):
                workers.create_task(self._work())

    def stop(self) -> None:
        self._stopping.set()

    async def _work(self) -> None:
        stopped = asyncio.ensure_future(self._stopping.wait())
        while not self._stopping.is_set():
            next_key = asyncio.ensure_future(self._waiting.get())
            await asyncio.wait({next_key, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not next_key.done():
                next_key.cancel()
                break
            place, _, key = next_key.result()
            if self._queued.get(key) == place:
                await self._take(key)
        stopped.cancel()

    async def _take(self, key: Key) -> None:
        del self._queued[key]
        self._running.add(key)
        clock = asyncio.get_running_loop()
        began = clock.time()
        try:
            outcome = await self._guarded_turn(key)
        except BaseException:
            self._running.discard(key)
            raise
        TURNS.labels(self._name, outcome).inc()
        if self._rests:
            rest = min(_LONGEST_REST_SECONDS, clock.time() - began)
            clock.call_later(rest, self._end_turn, key, outcome)
        else:
            self._end_turn(key, outcome)

    def _end_turn(self, key: Key, outcome: str) -> None:
        self._running.discard(key)
        if outcome in {"done", "stale"}:
            self._failures.pop(key, None)
        place = self._woken_meanwhile.pop(key, None)
        if outcome == "stale":
            self.wake(key, soon=True)
        elif place is not None:
            self._wake(key, place)
        elif outcome != "done":
            self._wake_later(key)

    async def _guarded_turn(self, key: Key) -> str:
        """The error boundary: whatever a turn raises, the next one can still be taken."""
        try:
            await self._turn(key)
        except Stale:
            return "stale"
        except Unavailable as error:
            _log.warning("turn_postponed", controller=self._name, key=str(key), error=error.message)
            return "unavailable"
        except Exception as error:  # noqa: BLE001 - the boundary: one bad turn must not stop the others
            self._faults.note_failure(self._name, error, str(key))
            return "defect"
        self._faults.note_success(self._name, str(key))
        return "done"

    def _wake_later(self, key: Key) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        ceiling = min(_LAST_RETRY_SECONDS, _FIRST_RETRY_SECONDS * 2.0 ** (failures - 1))
        delay = ceiling * random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, guards nothing
        asyncio.get_running_loop().call_later(delay, self.wake, key)


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
