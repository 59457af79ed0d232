"""Write down what room there is of each type: what the cloud keeps for us, and what the cluster shows.

The controller does the second live; a job does both every few minutes, for when there is no controller.
"""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from gpudev.app.controllers.admission import AdmissionController
from gpudev.domain.errors import ClusterUnavailable
from gpudev.domain.scaling import sum_capacity
from gpudev.ports.clock import Clock
from gpudev.ports.scaling import Scaling
from gpudev.ports.store import GpuTypes

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class AvailabilityRefresh:
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
