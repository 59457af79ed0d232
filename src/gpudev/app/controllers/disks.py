"""The disk controller: what a turn sees of a disk, plans for it and does.

Actions are carried out one at a time. They are idempotent and decide nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

import structlog

from gpudev.app.turns.engine import Observed
from gpudev.domain.disk import Disk, DiskEvent, DiskId
from gpudev.domain.errors import StorageRefused, Unavailable
from gpudev.domain.operations import OperationOutcome
from gpudev.domain.plans.disk_turn import (
    CreateSnapshot,
    CreateVolume,
    DeleteSnapshot,
    DeleteVolume,
    DiskAction,
    DiskObservation,
    DiskPlan,
    DiskPolicy,
    GrowVolume,
    KeepListing,
    RecordDisk,
    SetTags,
)
from gpudev.domain.plans.disks import plan_disk
from gpudev.domain.plans.turn import LookAgain
from gpudev.domain.reservation import Reservation
from gpudev.domain.volume import FileListing
from gpudev.ports.clock import Clock
from gpudev.ports.cluster import Cluster
from gpudev.ports.disks import DiskClaim, Disks
from gpudev.ports.reservations import Reservations
from gpudev.ports.turns import Kind
from gpudev.ports.volumes import Listings, Volumes
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say
from gpudev.texts.vocabulary import DiskEventKind, DiskState, OperationStatus


@dataclass(frozen=True, slots=True)
class DiskExecutor:
    disks: Disks
    volumes: Volumes
    listings: Listings | None = None
    """Where file listings go; None: into the database."""

    async def execute(self, claim: DiskClaim, action: DiskAction) -> DiskClaim:
        """Do it; the disk as it is afterwards, with the operations that are still to be settled."""
        if isinstance(action, RecordDisk):
            after = await self.disks.record(claim, action)
            return replace(claim, disk=after, operations=() if action.outcomes else claim.operations)
        await self._do(action)
        return claim

    async def _do(self, action: DiskAction) -> None:
        match action:
            case CreateVolume(spec):
                await self.volumes.create_volume(spec)
            case GrowVolume(volume_id, size_gb):
                await self.volumes.grow_volume(volume_id, size_gb)
            case CreateSnapshot(spec):
                await self.volumes.create_snapshot(spec)
            case SetTags(volume_ids, snapshot_ids, tags):
                await self.volumes.set_tags(volume_ids, snapshot_ids, tags)
            case DeleteVolume(volume_id):
                await self.volumes.delete_volume(volume_id)
            case DeleteSnapshot(snapshot_id):
                await self.volumes.delete_snapshot(snapshot_id)
            case KeepListing():
                await self._keep_listing(action)
            case RecordDisk() | LookAgain():
                pass
            case other:
                assert_never(other)

    async def _find_listing(self, action: KeepListing) -> FileListing | None:
        """By the storage; where that cannot tell, as its last server told."""
        found = await self.volumes.list_files(action.snapshot.snapshot_id)
        return found or await self.disks.take_home_listing(action.disk.id)

    async def _keep_listing(self, action: KeepListing) -> None:
        """Best effort: a listing that cannot be made is in nobody's way."""
        snapshot_id = action.snapshot.snapshot_id
        try:
            listing = await self._find_listing(action)
            if listing is None:
                return
            address = None
            if self.listings is not None:
                address = await self.listings.keep(action.disk.id, snapshot_id, listing.text)
        except Unavailable as error:
            _log.warning("listing_not_kept", disk_id=action.disk.id, error=error.message)
            return
        text = listing.text if address is None else None
        await self.disks.keep_listing(snapshot_id, text, address, listing.used_bytes)


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
