"""The shared boundary of background work: what fails in it stops nothing else.

An exception is counted, logged with the id of the item that it happened to, and the work is tried again after
a pause that grows. Work that keeps failing is listed, for `/ready` and for a metric, until it succeeds or is
not tried any more.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import structlog

from gpudev.domain.errors import Unavailable
from gpudev.domain.names import make_printable
from gpudev.telemetry import FAILING_ITEMS, FAULTS_TOTAL

T = TypeVar("T")

PERSISTENT_AFTER = 3
"""Failures in a row."""
_MOST_REMEMBERED = 10_000
_LONGEST_ERROR = 500
_FORGET_AFTER_SECONDS = 1800.0
"""After the last failure: whatever it was about is gone, for it would have been tried again since."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Failures:
    in_a_row: int
    at: float
    pause: float


class Faults:
    def __init__(self, first_pause: float = 1.0, longest_pause: float = 300.0) -> None:
        """Pauses in seconds."""
        self._first_pause = first_pause
        self._longest_pause = longest_pause
        self._failures: dict[tuple[str, str], _Failures] = {}

    async def attempt(self, chore: str, work: Callable[[], Awaitable[T]], item: str = "") -> T | None:
        """Run it once. None if it failed, or failed so recently that its pause is not over."""
        known = self._failures.get((chore, item))
        if known is not None and time.monotonic() < known.at + known.pause:
            return None
        try:
            result = await work()
        except Exception as error:  # noqa: BLE001 - the boundary of background work
            self.note_failure(chore, error, item)
            return None
        self.note_success(chore, item)
        return result

    async def persist(self, chore: str, work: Callable[[], Awaitable[T]], item: str = "") -> T:
        """Try until it is done."""
        while True:
            try:
                result = await work()
            except Exception as error:  # noqa: BLE001 - the boundary of background work
                pause = self.note_failure(chore, error, item)
            else:
                self.note_success(chore, item)
                return result
            await asyncio.sleep(pause)

    async def repeat(self, chore: str, work: Callable[[], Awaitable[object]], every: float) -> None:
        """For ever: again `every` so many seconds after it is done, and after a pause when it failed."""
        while True:
            await self.persist(chore, work)
            await asyncio.sleep(every)

    @contextmanager
    def containing(self, chore: str, item: str = "") -> Iterator[None]:
        """For work that waits for nothing: it ends here if it fails, and what comes after it goes on."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the boundary of background work
            self.note_failure(chore, error, item)
        else:
            self.note_success(chore, item)

    def note_failure(self, chore: str, error: Exception, item: str = "") -> float:
        """Count and log it; the pause in seconds before the next try."""
        known = self._failures.pop((chore, item), None)
        in_a_row = known.in_a_row + 1 if known else 1
        pause = self._choose_pause(in_a_row)
        self._failures[chore, item] = _Failures(in_a_row, time.monotonic(), pause)
        if len(self._failures) > _MOST_REMEMBERED:
            del self._failures[next(iter(self._failures))]
        FAULTS_TOTAL.labels(chore).inc()
        self._show(chore)
        log = _log.bind(chore=chore, item=item, failures=in_a_row, retry_seconds=round(pause, 1))
        if isinstance(error, Unavailable):
            log.warning("background_work_postponed", error=error.message)
        else:
            log.error("background_work_failed", exc_info=error)
        return pause

    def note_success(self, chore: str, item: str = "") -> None:
        if self._failures.pop((chore, item), None) is not None:
            self._show(chore)

    def list_failing(self) -> tuple[str, ...]:
        """The chores of which something has failed several times in a row."""
        oldest = time.monotonic() - _FORGET_AFTER_SECONDS
        for key in [key for key, known in self._failures.items() if known.at < oldest]:
            del self._failures[key]
            self._show(key[0])
        failing = (chore for (chore, _), known in self._failures.items() if _is_persistent(known))
        return tuple(sorted(set(failing)))

    def _show(self, chore: str) -> None:
        known = (failures for (name, _), failures in self._failures.items() if name == chore)
        FAILING_ITEMS.labels(chore).set(sum(map(_is_persistent, known)))

    def _choose_pause(self, in_a_row: int) -> float:
        longest = min(self._longest_pause, self._first_pause * 2.0 ** min(in_a_row - 1, 32))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, guards nothing


def describe_error(error: Exception) -> str:
    """Its kind and its words, in one line, for a person who looks into it later."""
    return make_printable(f"{type(error).__name__}: {error}", _LONGEST_ERROR)


def _is_persistent(failures: _Failures) -> bool:
    return failures.in_a_row >= PERSISTENT_AFTER


FAULTS = Faults()
"""Of this process."""
