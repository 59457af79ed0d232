"""Carry out the actions of a disk's plan: one at a time, idempotent, no decisions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

import structlog

from gpudev.domain.errors import Unavailable
from gpudev.domain.plans.actions import LookAgain
from gpudev.domain.plans.disk_actions import (
    CreateSnapshot,
    CreateVolume,
    DeleteSnapshot,
    DeleteVolume,
    DiskAction,
    GrowVolume,
    KeepListing,
    RecordDisk,
    SetTags,
)
from gpudev.domain.volume import FileListing
from gpudev.ports.disks import DiskClaim, Disks
from gpudev.ports.listings import Listings
from gpudev.ports.volumes import Volumes

_log = structlog.get_logger(__name__)


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
