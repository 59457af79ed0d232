"""What jobs do that are started every few minutes: a turn of all that is due, a look at what room there is.

The controller does all of this by itself and sooner; the jobs are for the time in which there is none. They
do not meet: a reservation is leased for its turn. A job that is killed has done what it has recorded, and the
next one, or the controller, does the rest.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import structlog

from gpudev.app.controllers.admission import AdmissionController
from gpudev.app.turns.engine import Engine
from gpudev.domain.errors import ClusterUnavailable, Stale, Unavailable
from gpudev.domain.scaling import sum_capacity
from gpudev.ports.clock import Clock
from gpudev.ports.cluster import Scaling
from gpudev.ports.nodes import GpuTypes
from gpudev.ports.turns import Kind, Turns

_DUE_AT_ONCE = 500
_TURNS_AT_ONCE = 8

_log = structlog.get_logger(__name__)


class Outcome(StrEnum):
    DONE = "done"
    LEFT = "left"
    """Decided as far as that was possible; the rest waits for the cluster, or for whoever moved first."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RunDue:
    """Takes the turn of each reservation that is due when it is called, once."""

    turns: Turns
    engine: Engine[Any, Any, Any]
    clock: Clock

    async def run(self) -> Counter[Outcome]:
        now = self.clock.now()
        outcomes: Counter[Outcome] = Counter()
        seen: set[str] = set()
        places = asyncio.Semaphore(_TURNS_AT_ONCE)
        while True:
            # What could not be finished is due again and stays in front.
            due = await self.turns.list_due(Kind.RESERVATION, now, _DUE_AT_ONCE + len(seen))
            fresh = [key for key in due if key not in seen]
            if not fresh:
                return outcomes
            outcomes.update(await asyncio.gather(*(self._turn(one, places) for one in fresh)))
            seen.update(fresh)

    async def _turn(self, reservation_id: str, places: asyncio.Semaphore) -> Outcome:
        async with places:
            try:
                await self.engine.turn(reservation_id)
            except (Unavailable, Stale) as error:
                _log.info("turn_left", reservation_id=reservation_id, error=error.message)
                return Outcome.LEFT
            except Exception:  # noqa: BLE001 - the boundary: one bad turn must not stop the others
                _log.exception("turn_failed", reservation_id=reservation_id)
                return Outcome.FAILED
        return Outcome.DONE


@dataclass(frozen=True, slots=True)
class AvailabilityRefresh:
    """Records what room there is of each type: what the cloud keeps for us, and what the cluster shows."""

    gpu_types: GpuTypes
    scaling: Scaling | None
    """None where no cloud keeps machines for us."""
    admission: AdmissionController
    clock: Clock
    offered: tuple[str, ...]
    name: str
    """Who says so, in `last_availability_updated_by`."""

    async def run(self) -> tuple[str, ...]:
        """The types that were looked at. If the cloud does not answer, nothing is changed."""
        if self.scaling is not None:
            capacity = sum_capacity(await self.scaling.list_groups(), self.offered)
            await self.gpu_types.set_capacity(capacity, self.name, self.clock.now())
        try:
            for gpu_type in self.offered:
                await self.admission.turn(gpu_type)
        except ClusterUnavailable as error:
            _log.info("cluster_left_to_the_controller", error=error.message)
        return self.offered
