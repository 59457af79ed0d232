"""What the plan of a disk can ask for: a closed union of frozen verbs, carried out in the order given.

The two that destroy data cannot be made without a proof that covers what they destroy.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from gpudev.domain.disk import Disk, DiskEvent, SnapshotId, VolumeId
from gpudev.domain.errors import Defect
from gpudev.domain.operations import OperationOutcome
from gpudev.domain.plans.actions import LookAgain
from gpudev.domain.proofs import ExpiredSoftDelete, Replaced, SnapshotProof, Superseded, VolumeProof
from gpudev.domain.volume import DiskTags, ObservedSnapshot, SnapshotSpec, VolumeSpec


@dataclass(frozen=True, slots=True)
class CreateVolume:
    """Make the volume, or find the one that was made with the same token."""

    spec: VolumeSpec


@dataclass(frozen=True, slots=True)
class GrowVolume:
    volume_id: VolumeId
    size_gb: int


@dataclass(frozen=True, slots=True)
class CreateSnapshot:
    """Begin the snapshot, or find the one that was begun with the same token."""

    spec: SnapshotSpec


@dataclass(frozen=True, slots=True)
class SetTags:
    """Have volumes and snapshots say whose they are."""

    volume_ids: tuple[VolumeId, ...]
    snapshot_ids: tuple[SnapshotId, ...]
    tags: DiskTags


@dataclass(frozen=True, slots=True)
class DeleteVolume:
    volume_id: VolumeId
    proof: VolumeProof

    def __post_init__(self) -> None:
        match self.proof:
            case Replaced(old_volume_id=covered):
                is_covered = covered == self.volume_id
            case ExpiredSoftDelete():
                is_covered = True
            case other:
                assert_never(other)
        if not is_covered:
            raise Defect("proof_of_another_volume", volume=self.volume_id)


@dataclass(frozen=True, slots=True)
class DeleteSnapshot:
    snapshot_id: SnapshotId
    proof: SnapshotProof

    def __post_init__(self) -> None:
        match self.proof:
            case Superseded(snapshot_id=covered):
                is_covered = covered == self.snapshot_id
            case ExpiredSoftDelete():
                is_covered = True
            case other:
                assert_never(other)
        if not is_covered:
            raise Defect("proof_of_another_snapshot", snapshot=self.snapshot_id)


@dataclass(frozen=True, slots=True)
class KeepListing:
    """Keep what is on a snapshot, as far as it can be read: best effort, and never in the way."""

    disk: Disk
    snapshot: ObservedSnapshot


@dataclass(frozen=True, slots=True)
class RecordDisk:
    """Write a change, its event and the outcome of the operations that it settles, if nobody moved first."""

    before: Disk
    after: Disk
    at: datetime
    event: DiskEvent | None = None
    outcomes: tuple[OperationOutcome, ...] = ()
    snapshots: tuple[ObservedSnapshot, ...] | None = None
    """All there are of it now, where they were looked at; None leaves what is known of them."""

    @property
    def frees(self) -> bool:
        """Somebody may wait for it."""
        return self.before.state is not self.after.state and self.after.state == "available"

    @property
    def is_ready(self) -> bool:
        """Its reservation can go on, or has to hear that it cannot."""
        moved = self.before.state is not self.after.state and self.after.state == "in_use"
        return moved or self.before.problem != self.after.problem


DiskAction = (
    CreateVolume
    | GrowVolume
    | CreateSnapshot
    | SetTags
    | DeleteVolume
    | DeleteSnapshot
    | KeepListing
    | RecordDisk
    | LookAgain
)
DESTRUCTIVE = (DeleteVolume, DeleteSnapshot)
