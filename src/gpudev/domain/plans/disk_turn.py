"""What a turn knows of a disk, and what it can do: a closed union of actions, carried out in the order given.

The two actions that destroy data cannot be made without a proof that covers what they destroy.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import assert_never

from gpudev.domain.disk import Disk, DiskEvent, DiskOperation, SnapshotId, VolumeId
from gpudev.domain.errors import Defect
from gpudev.domain.operations import OperationOutcome
from gpudev.domain.plans.turn import LookAgain
from gpudev.domain.proofs import ExpiredSoftDelete, Replaced, SnapshotProof, Superseded, VolumeProof
from gpudev.domain.reservation import Reservation
from gpudev.domain.volume import DiskTags, Holdings, ObservedSnapshot, SnapshotSpec, VolumeSpec
from gpudev.texts.fact import Fact, fact
from gpudev.texts.vocabulary import DiskEventKind


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


DiskPlan = tuple[DiskAction, ...]


@dataclass(frozen=True, slots=True)
class DiskPolicy:
    recheck: timedelta = timedelta(seconds=5)
    """How soon a storage at work is looked at again."""
    retry: timedelta = timedelta(minutes=1)
    """How soon what went wrong is tried again."""
    detach_limit: timedelta = timedelta(minutes=10)
    """A volume that is not let go for so long is a problem."""


@dataclass(frozen=True, slots=True)
class DiskObservation:
    """One read of the database, the cluster and the storage."""

    disk: Disk
    holdings: Holdings
    now: datetime
    operations: tuple[DiskOperation, ...] = ()
    holder: Reservation | None = None
    """The reservation that the row names."""
    has_server: bool = False
    """The cluster still shows a server of the holder; one that did not answer is not observed at all."""
    zone: str = ""
    """Of the node that the holder was placed on; empty where zones do not matter."""
    wanted_snapshots: frozenset[SnapshotId] = frozenset()
    """Those that copies of this disk are about to be made of."""
    policy: DiskPolicy = field(default_factory=DiskPolicy)

    @property
    def is_wanted(self) -> bool:
        """A reservation is on its way to a server with it, or has one."""
        return self.holder is not None and self.holder.is_placed

    def look_again(self) -> LookAgain:
        return LookAgain(self.now + self.policy.recheck)

    def record(self, after: Disk, kind: DiskEventKind, told: Fact) -> RecordDisk:
        return RecordDisk(self.disk, after, self.now, DiskEvent(kind, told, self.now))


def snapshot_token(disk: Disk) -> str:
    return f"{disk.id}/{disk.snapshots.snapshot_number}"


def note_problem(seen: DiskObservation, problem: Fact) -> DiskPlan:
    """Say it once, for the owner and for an operator, and try again later. Nothing is given up."""
    later = LookAgain(seen.now + seen.policy.retry)
    if seen.disk.problem == problem:
        return (later,)
    return (seen.record(replace(seen.disk, problem=problem), DiskEventKind.PROBLEM, problem), later)


def describe_lost(disk: Disk, holdings: Holdings) -> Fact:
    """What is said of a volume that is gone: nothing is made in its place."""
    if not holdings.completed:
        return fact("disk_volume_lost", volume=disk.volume.volume_id, name=disk.spec.name)
    newest = holdings.completed[0]
    return fact(
        "disk_volume_lost_with_snapshot",
        volume=disk.volume.volume_id,
        name=disk.spec.name,
        snapshot=newest.snapshot_id,
        at=newest.started_at,
    )
