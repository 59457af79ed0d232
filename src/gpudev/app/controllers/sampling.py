"""Measure every dev server now and then, and wake those whose idleness is news."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from gpudev.domain.idle import IdlePolicy, find_idle_since, judge
from gpudev.domain.names import ReservationId
from gpudev.domain.reservation import Reservation
from gpudev.domain.server import ObservedServer, ServerPhase
from gpudev.faults import FAULTS, Faults
from gpudev.ports.clock import Clock
from gpudev.ports.cluster import Cluster
from gpudev.ports.store import Reservations
from gpudev.ports.usage import Sample, Usages

_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Sampler:
    reservations: Reservations
    usages: Usages
    cluster: Cluster
    policy: IdlePolicy
    clock: Clock
    every: timedelta
    faults: Faults = FAULTS

    async def sample(self) -> tuple[Sample, ...]:
        """A time in which a server cannot be measured is one of which nothing is known."""
        servers = self.cluster.snapshot().servers
        active = await self.reservations.list_active()
        places = asyncio.Semaphore(_AT_ONCE)
        running = [(row, server) for row in active if (server := _find_running(servers.get(row.id)))]
        found = await asyncio.gather(*(self._measure(row, server, places) for row, server in running))
        samples = tuple(sample for sample in found if sample is not None)
        idle = frozenset(row.id for row in active if row.activity.idle_since is not None)
        if samples and not await self.faults.attempt("usage", partial(self._keep, samples, idle)):
            # One of them cannot be kept; the others are.
            for sample in samples:
                work = partial(self._keep, (sample,), idle)
                await self.faults.attempt("usage", work, sample.reservation_id)
        return samples

    async def _measure(
        self, row: Reservation, server: ObservedServer, places: asyncio.Semaphore
    ) -> Sample | None:
        async with places:
            work = partial(self.cluster.measure, row.id, server.uid, self.clock.now())
            usage = await self.faults.attempt("sampling", work, row.id)
        if usage is None:
            return None
        verdict = judge(usage, self.policy)
        return Sample(
            row.id, usage, find_idle_since(row.activity.idle_since, usage, verdict), verdict.signals
        )

    async def _keep(self, samples: tuple[Sample, ...], idle: frozenset[ReservationId]) -> bool:
        """Those that became idle or busy are woken: the plan has another time to look at them."""
        await self.usages.add(samples)
        for sample in samples:
            if (sample.idle_since is not None) != (sample.reservation_id in idle):
                await self.reservations.wake(sample.reservation_id)
        return True


def _find_running(server: ObservedServer | None) -> ObservedServer | None:
    return server if server is not None and server.phase is ServerPhase.READY else None
