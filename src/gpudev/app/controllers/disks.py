"""The disk controller: what a turn sees of a disk, plans for it and does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog

from gpudev.app.controllers.disk_executor import DiskExecutor
from gpudev.app.turns.engine import Observed
from gpudev.domain.disk import Disk, DiskEvent, DiskId
from gpudev.domain.errors import StorageRefused, Unavailable
from gpudev.domain.operations import OperationOutcome
from gpudev.domain.plans.disk_actions import DiskAction, RecordDisk
from gpudev.domain.plans.disk_observation import DiskObservation, DiskPlan, DiskPolicy
from gpudev.domain.plans.disks import plan_disk
from gpudev.domain.reservation import Reservation
from gpudev.ports.clock import Clock
from gpudev.ports.cluster import Cluster
from gpudev.ports.disks import DiskClaim
from gpudev.ports.store import Reservations
from gpudev.ports.turns import Kind
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say
from gpudev.texts.vocabulary import DiskEventKind, DiskState, OperationStatus

SAFETY_NET = timedelta(minutes=5)
"""However quiet things are, a disk on its way is looked at this often."""

_REFUSED_RETRY = timedelta(minutes=1)
_AT_REST = frozenset({DiskState.AVAILABLE, DiskState.PURGED})

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a disk is seen with."""

    reservations: Reservations
    cluster: Cluster
    clock: Clock
    policy: DiskPolicy
    lease: timedelta = timedelta(seconds=60)
    """How long a disk waits for a controller that died with it in hand. Storage, which turns ask, is slow."""


class DiskWork:
    """What the turn engine does with disks."""

    kind = Kind.DISK

    def __init__(self, executor: DiskExecutor, surroundings: Surroundings) -> None:
        self._executor = executor
        self._disks = executor.disks
        self._around = surroundings
        self._clock = surroundings.clock

    async def claim(self, key: str) -> DiskClaim | None:
        return await self._disks.claim(DiskId(key), self._around.lease)

    async def observe(
        self,
        claim: DiskClaim,
        before: DiskObservation | None,  # noqa: ARG002 - a port
    ) -> Observed[DiskObservation]:
        disk = claim.disk
        holder = await self._find_holder(disk)
        seen = DiskObservation(
            disk=disk,
            holdings=await self._executor.volumes.find(disk.id, disk.volume.volume_id),
            now=self._clock.now(),
            operations=claim.operations,
            holder=holder,
            has_server=await self._has_server(holder),
            zone=self._zone_of(holder),
            wanted_snapshots=claim.wanted_snapshots,
            policy=self._around.policy,
        )
        return Observed(seen)

    def plan(self, seen: DiskObservation) -> DiskPlan:
        return plan_disk(seen)

    async def execute(self, claim: DiskClaim, action: DiskAction) -> DiskClaim:
        return await self._executor.execute(claim, action)

    def find_next_turn(self, claim: DiskClaim, looks: Sequence[datetime]) -> datetime | None:
        state = claim.disk.state
        if state in _AT_REST and not looks:
            return None
        if state is DiskState.SOFT_DELETED and looks:
            return min(looks)
        return min([self._clock.now() + SAFETY_NET, *looks])

    async def note_refusal(self, claim: DiskClaim, error: Unavailable) -> datetime | None:
        """The storage will not: the owner and an operator are told, once, and it is tried again."""
        if not isinstance(error, StorageRefused):
            return None
        now = self._clock.now()
        disk = await self._disks.get(claim.disk.id)
        problem = fact("disk_storage_refused", cause=error.fact)
        if disk.problem != problem:
            _log.error("storage_refused", disk_id=disk.id, problem=say(problem))
            event = DiskEvent(DiskEventKind.PROBLEM, problem, now)
            await self._disks.record(claim, RecordDisk(disk, replace(disk, problem=problem), now, event))
        return now + _REFUSED_RETRY

    async def give_up(self, claim: DiskClaim, error: str, message_ids: Sequence[int]) -> bool:
        """The operations fail, and the disk stays as it is."""
        if not claim.operations:
            return False
        now = self._clock.now()
        disk = await self._disks.get(claim.disk.id)
        why = fact("disk_defect")
        outcomes = tuple(
            OperationOutcome(asked.operation_id, OperationStatus.FAILED, why) for asked in claim.operations
        )
        event = DiskEvent(DiskEventKind.PROBLEM, why, now)
        record = RecordDisk(disk, replace(disk, problem=why), now, event, outcomes)
        await self._disks.bury(claim, record, error, message_ids)
        return True

    async def _find_holder(self, disk: Disk) -> Reservation | None:
        if disk.reservation_id is None:
            return None
        return await self._around.reservations.get(disk.reservation_id)

    async def _has_server(self, holder: Reservation | None) -> bool:
        """Read fresh: that a server is gone is believed only if the cluster says so now."""
        if holder is None:
            return False
        return await self._around.cluster.find_server(holder.id, holder.spec.node_count) is not None

    def _zone_of(self, holder: Reservation | None) -> str:
        nodes = self._around.cluster.snapshot().nodes
        return next((node.zone for node in nodes if holder and node.name == holder.node), "")
