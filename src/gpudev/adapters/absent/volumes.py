"""No storage for disks: nobody has any, and nothing is known of what there may be elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from gpudev.domain.disk import DiskId, SnapshotId, VolumeId
from gpudev.domain.errors import StorageRefused
from gpudev.domain.volume import (
    DiskTags,
    FileListing,
    Holdings,
    ObservedSnapshot,
    ObservedVolume,
    SnapshotSpec,
    VolumeSpec,
)


class AbsentVolumes:
    async def find(self, disk_id: DiskId, volume_id: VolumeId | None) -> Holdings:
        _refuse(disk_id, volume_id)

    async def list_volumes(self) -> tuple[ObservedVolume, ...]:
        _refuse()

    async def list_snapshots(self) -> tuple[ObservedSnapshot, ...]:
        _refuse()

    async def create_volume(self, spec: VolumeSpec) -> None:
        _refuse(spec)

    async def grow_volume(self, volume_id: VolumeId, size_gb: int) -> None:
        _refuse(volume_id, size_gb)

    async def create_snapshot(self, spec: SnapshotSpec) -> None:
        _refuse(spec)

    async def set_tags(
        self, volume_ids: Sequence[VolumeId], snapshot_ids: Sequence[SnapshotId], tags: DiskTags
    ) -> None:
        _refuse(volume_ids, snapshot_ids, tags)

    async def delete_volume(self, volume_id: VolumeId) -> None:
        _refuse(volume_id)

    async def delete_snapshot(self, snapshot_id: SnapshotId) -> None:
        _refuse(snapshot_id)

    async def list_files(self, snapshot_id: SnapshotId) -> FileListing | None:
        _refuse(snapshot_id)


def _refuse(*_asked: object) -> NoReturn:
    raise StorageRefused("no_storage")
