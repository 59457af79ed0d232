"""File listings of snapshots, where they are not kept in the database."""

from __future__ import annotations

from typing import Protocol

from gpudev.domain.disk import DiskId, SnapshotId


class Listings(Protocol):
    """Both raise `StorageUnavailable` or `StorageRefused`, as `ports.volumes` does."""

    async def keep(self, disk_id: DiskId, snapshot_id: SnapshotId, text: str) -> str:
        """Its address."""
        ...

    async def read(self, address: str) -> str: ...
