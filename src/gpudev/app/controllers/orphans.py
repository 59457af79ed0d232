"""The orphan controller: one turn takes away what belongs to no reservation any more."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import structlog

from gpudev.domain.plans.orphans import Observation, plan_orphans
from gpudev.faults import FAULTS, Faults
from gpudev.ports.clock import Clock
from gpudev.ports.cluster import Cluster
from gpudev.ports.store import Reservations

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class OrphanController:
    reservations: Reservations
    cluster: Cluster
    clock: Clock
    faults: Faults = FAULTS

    async def turn(self, _everything: str) -> None:
        """The cluster is looked at first: whatever is in it has had its row before."""
        found = self.cluster.list_leftovers()
        owners = frozenset(one.reservation_id for one in found)
        unfinished = await self.reservations.list_unfinished(owners) if owners else frozenset()
        for action in plan_orphans(Observation(found, unfinished, self.clock.now())):
            orphan = action.leftover
            _log.warning("orphan_removed", kind=orphan.kind, name=orphan.name, owner=orphan.reservation_id)
            await self.faults.attempt("orphans", partial(self.cluster.remove_leftover, orphan), orphan.name)
