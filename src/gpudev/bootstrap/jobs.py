"""What runs once and ends: the jobs that a deployment starts every few minutes."""

from __future__ import annotations

import asyncio
from collections import Counter

from gpudev.adapters.absent.cluster import AbsentCluster
from gpudev.app.controllers.once import Outcome, RunDue
from gpudev.app.controllers.reservations import ReservationController, Rules
from gpudev.bootstrap.controller import make_executor, read_known_catalogue
from gpudev.bootstrap.foundation import SystemClock, begin, make_policy, open_stores
from gpudev.settings import Settings


def run_expire() -> dict[str, int]:
    """How many turns were taken, by how they went."""
    settings = Settings()
    begin(settings)
    outcomes = asyncio.run(_expire(settings))
    return {outcome.value: outcomes[outcome] for outcome in Outcome}


async def _expire(settings: Settings) -> Counter[Outcome]:
    """The cluster is the controller's: what the clock alone decides is recorded, the rest is left to it."""
    clock = SystemClock()
    async with open_stores(settings) as stores:
        await stores.health.check()
        rules = Rules(await read_known_catalogue(settings, stores), make_policy(settings))
        executor = make_executor(settings, stores, AbsentCluster(), clock)
        controller = ReservationController(stores.queue, executor, rules)
        return await RunDue(stores.reservations, controller, clock)()
