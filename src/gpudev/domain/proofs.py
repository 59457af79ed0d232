"""Why something may be destroyed: values that cannot be made unless it is true.

An action that destroys data (`plans.disk_actions`) takes one of these. There are three ways to be allowed:

    Replaced           the volume's bytes are in a complete snapshot, and in the volume that was made of it
    Superseded         enough newer complete snapshots exist, and this one is old
    ExpiredSoftDelete  its owner deleted the disk, and the time to have it back is over

Each is made from what was observed, and checks itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from gpudev.domain.disk import SNAPSHOTS_KEPT, SNAPSHOTS_KEPT_FOR, Disk, SnapshotId, VolumeId
from gpudev.domain.errors import Defect
from gpudev.domain.volume import Holdings, VolumePhase
from gpudev.texts.vocabulary import DiskState


@dataclass(frozen=True, slots=True)
class ExpiredSoftDelete:
    """Covers everything of the disk. That it is being purged was written down before."""

    disk: Disk
    now: datetime

    def __post_init__(self) -> None:
        if self.disk.state is not DiskState.PURGING:
            raise Defect("disk_may_not_be_destroyed", name=self.disk.spec.name, state=self.disk.state)
        if self.disk.delete_date is None or self.now < self.disk.delete_date:
            raise Defect("disk_not_due_for_purge", name=self.disk.spec.name)


@dataclass(frozen=True, slots=True)
class Replaced:
    """Covers one volume that a disk has left: it moved to another zone."""

    disk: Disk
    old_volume_id: VolumeId
    snapshot_id: SnapshotId
    holdings: Holdings

    def __post_init__(self) -> None:
        if not self._is_true():
            raise Defect("volume_not_replaced", volume=self.old_volume_id)

    def _is_true(self) -> bool:
        """The row names another volume, which is ready and was made of the last snapshot of this one."""
        present = self.holdings.find_volume(self.disk.volume.volume_id)
        last = next((each for each in self.holdings.completed if each.volume_id == self.old_volume_id), None)
        return (
            present is not None
            and present.volume_id != self.old_volume_id
            and present.phase is VolumePhase.READY
            and last is not None
            and last.snapshot_id == self.snapshot_id == present.source_snapshot_id
        )


@dataclass(frozen=True, slots=True)
class Superseded:
    """Covers one snapshot of a disk that is there with newer ones."""

    snapshot_id: SnapshotId
    holdings: Holdings
    now: datetime

    def __post_init__(self) -> None:
        if not is_superseded(self.snapshot_id, self.holdings, self.now):
            raise Defect("snapshot_is_kept", snapshot=self.snapshot_id)


VolumeProof = Replaced | ExpiredSoftDelete
SnapshotProof = Superseded | ExpiredSoftDelete


def is_superseded(snapshot_id: SnapshotId, holdings: Holdings, now: datetime) -> bool:
    """Old, complete, and not among the newest that are kept whatever their age."""
    rest = holdings.completed[SNAPSHOTS_KEPT:]
    return any(
        snapshot.snapshot_id == snapshot_id and now - snapshot.started_at > SNAPSHOTS_KEPT_FOR
        for snapshot in rest
    )
