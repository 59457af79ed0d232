"""Where the bytes of disks are: volumes, their snapshots, and the listings of files on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gpudev.domain.disk import DiskId, SnapshotId, VolumeId
from gpudev.domain.volume import (
    DiskTags,
    FileListing,
    Holdings,
    ObservedSnapshot,
    ObservedVolume,
    SnapshotSpec,
    VolumeSpec,
)


class VolumeListings(Protocol):
    """Everything that there is, as far as it says whose it is. It raises what `Volumes` does."""

    async def list_volumes(self) -> tuple[ObservedVolume, ...]:
        """Every volume that is somebody's disk, or says half of it: in pages, with no call for each disk."""
        ...

    async def list_snapshots(self) -> tuple[ObservedSnapshot, ...]:
        """All snapshots of ours that the storage has."""
        ...


class Volumes(VolumeListings, Protocol):
    """A storage of volumes. What attaches a volume to a server is the cluster; here it is only seen.

    Nothing here decides, least of all what may be deleted. Every method raises `StorageUnavailable` when the
    storage does not answer or wants to be asked less, and `StorageRefused`, with what an operator should do,
    when it will not: an unanswered call is never to be read as "there is no volume".

    Volumes and snapshots say whose they are by their tags, from the moment they exist.
    """

    async def find(self, disk_id: DiskId, volume_id: VolumeId | None) -> Holdings:
        """A fresh read of everything that is tagged with this disk, and of this volume whatever its tags."""
        ...

    async def create_volume(self, spec: VolumeSpec) -> None:
        """Begin to make a volume, or find the one of the same token. It may be `MAKING` for a while."""
        ...

    async def grow_volume(self, volume_id: VolumeId, size_gb: int) -> None:
        """Idempotent. It is never made smaller."""
        ...

    async def create_snapshot(self, spec: SnapshotSpec) -> None:
        """Begin a snapshot of the bytes as they are now, or find the one of the same token."""
        ...

    async def set_tags(
        self, volume_ids: Sequence[VolumeId], snapshot_ids: Sequence[SnapshotId], tags: DiskTags
    ) -> None:
        """Tag volumes and snapshots with whose they are."""
        ...

    async def delete_volume(self, volume_id: VolumeId) -> None:
        """Idempotent: gone already is success. One that is attached is refused."""
        ...

    async def delete_snapshot(self, snapshot_id: SnapshotId) -> None:
        """Idempotent. Other snapshots, and volumes that were made of it, stay whole."""
        ...

    async def list_files(self, snapshot_id: SnapshotId) -> FileListing | None:
        """What is on a complete snapshot; None where that cannot be seen without mounting it."""
        ...


class Listings(Protocol):
    """Both raise `StorageUnavailable` or `StorageRefused`, as `ports.volumes` does."""

    async def keep(self, disk_id: DiskId, snapshot_id: SnapshotId, text: str) -> str:
        """Its address."""
        ...

    async def read(self, address: str) -> str:
        """The listing that was kept under this address."""
        ...
