"""A sleep that ends when its time comes, or when somebody has set an earlier one meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime

from gpudev.ports.clock import Clock

_FAR_FUTURE = datetime.max.replace(tzinfo=UTC)


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
        self._until = due
        with contextlib.suppress(TimeoutError):
            seconds = max(0.0, (due - self._clock.now()).total_seconds())
            await asyncio.wait_for(self._is_early.wait(), seconds)
