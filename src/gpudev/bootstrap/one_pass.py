"""What a deployment runs by the clock: one pass of the work that controllers do all the time.

It is the net under them. Leases keep a pass and the controllers apart, so it may run at any time.
"""

from __future__ import annotations

import asyncio

from gpudev.bootstrap.controller import open_controllers
from gpudev.bootstrap.foundation import begin
from gpudev.settings import Settings


def run_expiry() -> int:
    """Take the turns that are due; how many were."""
    settings = Settings()
    begin(settings)
    return asyncio.run(_expire(settings))


def run_refresh() -> None:
    """Write down what is free of every type, and give those who wait their places."""
    settings = Settings()
    begin(settings)
    asyncio.run(_refresh(settings))


async def _expire(settings: Settings) -> int:
    async with open_controllers(settings) as opened:
        return await opened.controllers.turn_due()


async def _refresh(settings: Settings) -> None:
    async with open_controllers(settings) as opened:
        await opened.refresh()
