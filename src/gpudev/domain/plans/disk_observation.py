"""One read of everything that is known of a disk, and what the parts of its plan have in common."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from gpudev.domain.disk import Disk, DiskEvent, DiskOperation, SnapshotId
from gpudev.domain.plans.actions import LookAgain
from gpudev.domain.plans.disk_actions import DiskAction, RecordDisk
from gpudev.domain.reservation import Reservation
from gpudev.domain.volume import Holdings
from gpudev.texts.fact import Fact, fact
from gpudev.texts.vocabulary import DiskEventKind

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
