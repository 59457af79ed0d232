"""Figures for Prometheus that are in the database, whichever process put them there.

GPUs, reservations and controllers, disks as the last reconciliation saw them, and how good forecasts were.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass

from gpudev.app.reservations.preview import Preview
from gpudev.domain.errors import StoreUnavailable
from gpudev.ports.disks import DiskLedger
from gpudev.ports.health import Health
from gpudev.ports.nodes import GpuTypes
from gpudev.ports.queue import DeadLetters
from gpudev.ports.reservations import Reservations, StatusCount
from gpudev.telemetry import (
    DEAD_LETTERS,
    DISK_RECONCILIATION,
    DISK_RECONCILIATION_TIME,
    FORECASTS,
    GPUS,
    HEARTBEAT_AGE,
    QUEUED_GPUS,
    QUEUED_REQUESTS,
    RESERVATIONS,
    RESERVED_GPUS,
)
from gpudev.texts.vocabulary import LIVE

_CLUSTER_SECONDS = 15.0
_NONE = StatusCount(0, 0)
_DISK_SECONDS = 30.0
_FORECAST_SECONDS = 60.0


async def keep_showing(show: Callable[[], Awaitable[None]], health: Health, seconds: float) -> None:
    """Until cancelled. While the database is silent, which has an alert, the last figures stand."""
    while True:
        with contextlib.suppress(StoreUnavailable):
            await health.check()
            await show()
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class ClusterFigures:
    gpu_types: GpuTypes
    reservations: Reservations
    health: Health
    dead_letters: DeadLetters

    async def run(self) -> None:
        """Until cancelled."""
        await keep_showing(self.show, self.health, _CLUSTER_SECONDS)

    async def show(self) -> None:
        for stored in await self.gpu_types.list_availability():
            room = stored.availability
            GPUS.labels(room.gpu_type, "total").set(room.total)
            GPUS.labels(room.gpu_type, "available").set(room.available)
            QUEUED_REQUESTS.labels(room.gpu_type).set(stored.queued_requests)
            QUEUED_GPUS.labels(room.gpu_type).set(stored.queued_gpus)
        counts = await self.reservations.count_live()
        for status in LIVE:
            count = counts.get(status, _NONE)
            RESERVATIONS.labels(status).set(count.reservations)
            RESERVED_GPUS.labels(status).set(count.gpus)
        for queue, letters in (await self.dead_letters.count()).items():
            DEAD_LETTERS.labels(queue).set(letters)
        for beat in await self.health.list_controllers():
            HEARTBEAT_AGE.labels(beat.name).set(beat.age.total_seconds())


@dataclass(frozen=True, slots=True)
class DiskFigures:
    ledger: DiskLedger
    health: Health

    async def run(self) -> None:
        """Until cancelled."""
        await keep_showing(self.show, self.health, _DISK_SECONDS)

    async def show(self) -> None:
        last = await self.ledger.find_last()
        if last is None:
            return
        for name, value in asdict(last.statistics).items():
            DISK_RECONCILIATION.labels(name).set(value)
        DISK_RECONCILIATION_TIME.set(last.at.timestamp())


@dataclass(frozen=True, slots=True)
class ForecastFigures:
    preview: Preview
    health: Health

    async def run(self) -> None:
        """Until cancelled."""
        await keep_showing(self.show, self.health, _FORECAST_SECONDS)

    async def show(self) -> None:
        for measured in await self.preview.measure_accuracy():
            figures = asdict(measured)
            gpu_type = figures.pop("gpu_type")
            for name, value in figures.items():
                if value is not None:
                    FORECASTS.labels(gpu_type, name).set(value)
