"""Volumes and snapshots as the rules see them: what is asked of a storage, and what a storage shows.

A disk is ours, a row of the database. Its bytes are in a volume of the storage, and its past in snapshots.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gpudev.domain.disk import Disk, DiskId, SnapshotId, VolumeId
from gpudev.texts.fact import Fact


@dataclass(frozen=True, slots=True)
class DiskTags:
    """What a volume or a snapshot says of itself, so that it can be told whose it is without a database."""

    username: str
    disk_name: str
    disk_id: DiskId | None = None
    """None: it was made by somebody else, and nobody has taken it in yet."""
    delete_date: datetime | None = None


def tags_of(disk: Disk) -> DiskTags:
    """To the second: tags are text, and have no more."""
    delete_date = disk.delete_date.replace(microsecond=0) if disk.delete_date else None
    return DiskTags(disk.spec.username, disk.spec.name, disk.id, delete_date)


class VolumePhase(StrEnum):
    MAKING = "making"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ObservedVolume:
    volume_id: VolumeId
    tags: DiskTags | None
    """None if it lacks what says whose it is."""
    size_gb: int
    created_at: datetime
    phase: VolumePhase = VolumePhase.READY
    zone: str = ""
    attached_to: str = ""
    """The machine that has it now, in the storage's own words; empty if none has."""
    source_snapshot_id: SnapshotId | None = None
    is_blank: bool = False
    """Nothing was made for it yet, so nobody has written to it: its place is that of its first server."""


class SnapshotPhase(StrEnum):
    PENDING = "pending"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ObservedSnapshot:
    snapshot_id: SnapshotId
    volume_id: VolumeId
    tags: DiskTags | None
    phase: SnapshotPhase
    started_at: datetime
    size_gb: int = 0
    token: str = ""
    """What it was asked for with; the same token again means the same snapshot."""
    detail: Fact | None = None

    @property
    def is_completed(self) -> bool:
        return self.phase is SnapshotPhase.COMPLETED


@dataclass(frozen=True, slots=True)
class Holdings:
    """Everything that a storage has of one disk."""

    volumes: tuple[ObservedVolume, ...] = ()
    snapshots: tuple[ObservedSnapshot, ...] = ()

    def find_volume(self, volume_id: VolumeId | None) -> ObservedVolume | None:
        return next((volume for volume in self.volumes if volume.volume_id == volume_id), None)

    def find_snapshot(self, token: str) -> ObservedSnapshot | None:
        return next((snapshot for snapshot in self.snapshots if snapshot.token == token), None)

    @property
    def completed(self) -> tuple[ObservedSnapshot, ...]:
        """Complete snapshots, the newest first."""
        done = (snapshot for snapshot in self.snapshots if snapshot.is_completed)
        return tuple(sorted(done, key=lambda each: (each.started_at, each.snapshot_id), reverse=True))


@dataclass(frozen=True, slots=True)
class VolumeSpec:
    """A volume to be made; the same token twice means the same volume."""

    token: str
    tags: DiskTags
    size_gb: int
    zone: str = ""
    """Where; empty: wherever the storage makes volumes by itself."""
    source_snapshot_id: SnapshotId | None = None
    """None: an empty one."""


@dataclass(frozen=True, slots=True)
class SnapshotSpec:
    token: str
    volume_id: VolumeId
    tags: DiskTags


@dataclass(frozen=True, slots=True)
class FileListing:
    """What is on a snapshot, for people to read."""

    text: str
    used_bytes: int
