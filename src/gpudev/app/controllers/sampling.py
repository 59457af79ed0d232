"""Measure every dev server now and then, and wake those whose idleness is news."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta

import structlog

from gpudev.domain.errors import ClusterUnavailable, Unavailable
from gpudev.domain.idle import IdlePolicy, find_idle_since, judge
from gpudev.domain.names import ReservationId
from gpudev.domain.reservation import Reservation
from gpudev.domain.server import ObservedServer, ServerPhase
from gpudev.ports.clock import Clock
from gpudev.ports.cluster import Cluster
from gpudev.ports.store import Reservations
from gpudev.ports.usage import Sample, Usages

_AT_ONCE = 8

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Sampler:
    reservations: Reservations
    usages: Usages
    cluster: Cluster
    policy: IdlePolicy
    clock: Clock
    every: timedelta

    async def run(self) -> None:
        """For ever. A time in which nothing can be measured is one of which nothing is known."""
        while True:
            try:
                await self.sample()
            except Unavailable as error:
                _log.warning("sampling_postponed", error=error.message)
            await asyncio.sleep(self.every.total_seconds())

    async def sample(self) -> tuple[Sample, ...]:
        servers = self.cluster.snapshot().servers
        active = await self.reservations.list_active()
        places = asyncio.Semaphore(_AT_ONCE)
        running = [(row, server) for row in active if (server := _find_running(servers.get(row.id)))]
        found = await asyncio.gather(*(self._measure(row, server, places) for row, server in running))
        samples = tuple(sample for sample in found if sample is not None)
        if samples:
            await self.usages.add(samples)
            await self._wake(active, samples)
        return samples

    async def _measure(
        self, row: Reservation, server: ObservedServer, places: asyncio.Semaphore
    ) -> Sample | None:
        async with places:
            try:
                usage = await self.cluster.measure(row.id, server.uid, self.clock.now())
            except ClusterUnavailable as error:
                _log.warning("not_measured", reservation_id=row.id, error=error.message)
                return None
        if usage is None:
            return None
        verdict = judge(usage, self.policy)
        return Sample(row.id, usage, find_idle_since(row.idle_since, usage, verdict), verdict.words)

    async def _wake(self, active: tuple[Reservation, ...], samples: tuple[Sample, ...]) -> None:
        """Those that became idle or busy: the plan has another time to look at them."""
        was_idle: dict[ReservationId, bool] = {row.id: row.idle_since is not None for row in active}
        for sample in samples:
            if (sample.idle_since is not None) != was_idle[sample.reservation_id]:
                await self.reservations.wake(sample.reservation_id)


def _find_running(server: ObservedServer | None) -> ObservedServer | None:
    return server if server is not None and server.phase is ServerPhase.READY else None
