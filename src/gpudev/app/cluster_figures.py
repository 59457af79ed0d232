"""How many GPUs there are, who has them and who waits for them, for Prometheus: from the database."""

from __future__ import annotations

from dataclasses import dataclass

from gpudev.app.figures import keep_showing
from gpudev.ports.dead_letters import DeadLetters
from gpudev.ports.health import Health
from gpudev.ports.store import GpuTypes, Reservations, StatusCount
from gpudev.telemetry import (
    DEAD_LETTERS,
    GPUS,
    HEARTBEAT_AGE,
    QUEUED_GPUS,
    QUEUED_REQUESTS,
    RESERVATIONS,
    RESERVED_GPUS,
)
from gpudev.texts.vocabulary import LIVE

_EVERY_SECONDS = 15.0
_NONE = StatusCount(0, 0)


@dataclass(frozen=True, slots=True)
class ShowClusterFigures:
    gpu_types: GpuTypes
    reservations: Reservations
    health: Health
    dead_letters: DeadLetters

    async def run(self) -> None:
        """Until cancelled."""
        await keep_showing(self.show, self.health, _EVERY_SECONDS)

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
