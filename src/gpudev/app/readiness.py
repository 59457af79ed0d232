"""Whether the service is ready, and what of it is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpudev.domain.readiness import Readiness, judge_readiness
from gpudev.faults import FAULTS, Faults
from gpudev.ports.health import Health


@dataclass(frozen=True, slots=True)
class CheckReadiness:
    health: Health
    find_free_bytes: Callable[[], int | None]
    """Of the disk that the database is on; None where it is not on this machine."""
    fewest_free_bytes: int
    faults: Faults = FAULTS

    async def __call__(self) -> Readiness:
        """`StoreUnavailable` if the database cannot be used."""
        await self.health.check()
        beats = await self.health.list_controllers()
        free = self.find_free_bytes()
        is_full = None if free is None else free < self.fewest_free_bytes
        return judge_readiness(beats, self.faults.list_failing(), is_disk_full=is_full)
