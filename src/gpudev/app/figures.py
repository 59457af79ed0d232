"""Figures for Prometheus that are in the database, whichever process put them there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from gpudev.domain.errors import StoreUnavailable
from gpudev.ports.health import Health


async def keep_showing(show: Callable[[], Awaitable[None]], health: Health, seconds: float) -> None:
    """Until cancelled. While the database is silent, which has an alert, the last figures stand."""
    while True:
        with contextlib.suppress(StoreUnavailable):
            await health.check()
            await show()
        await asyncio.sleep(seconds)
