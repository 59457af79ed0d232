"""A sleep that ends when its time comes, or when somebody has set an earlier one meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime, timedelta

from gpudev.ports.clock import Clock

_FAR_FUTURE = datetime.max.replace(tzinfo=UTC)
_NAP = timedelta(seconds=0.5)


class Alarm:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = _FAR_FUTURE
        self._is_early = asyncio.Event()

    def watch(self) -> None:
        """From now on until `sleep_until`, whatever time is set may be earlier than what was read."""
        self._until = _FAR_FUTURE
        self._is_early.clear()

    def set(self, at: datetime | None) -> None:
        if at is not None and at < self._until:
            self._is_early.set()

    async def sleep_until(self, due: datetime) -> None:
        """Never long without a look at the clock, which may have been changed meanwhile."""
        self._until = due
        while (left := due - self._clock.now()) > timedelta() and not self._is_early.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._is_early.wait(), min(left, _NAP).total_seconds())
