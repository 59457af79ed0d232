"""What to change in the rows of disks so that they say what the storage says: the storage is the truth.

Rows are read before the volumes are listed. So a volume that nobody held in the listing was not held after
its row was read either, unless the row has moved on; and then its guarded write comes to nothing.

Nothing here ever deletes, neither a row nor a volume.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpudev.domain.disk import DELETED, HELD, Disk, DiskId, begin_snapshot
from gpudev.domain.volume import ObservedSnapshot, ObservedVolume, SnapshotPhase
from gpudev.texts.fact import Fact, fact
from gpudev.texts.vocabulary import DiskState

_ON_ITS_WAY = HELD | {DiskState.SNAPSHOTTING}


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """A disk with what a reconciliation has to know of its reservation."""

    disk: Disk
    has_pending_snapshot: bool = False
    is_holder_clean: bool = True
    """Nothing is left on the cluster of the reservation that the row names."""

    @property
    def is_held_by_live(self) -> bool:
        """Whoever asked for it has it, or is about to."""
        disk = self.disk
        return disk.reservation_id is not None and disk.reservation_id == disk.named_by


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a reconciliation counted, as it is logged, stored and exported."""

    aws_volumes: int = 0
    db_records: int = 0
    synced: int = 0
    updated: int = 0
    created: int = 0
    errors: int = 0
    orphaned_db_active: int = 0
    orphaned_db_deleted: int = 0


@dataclass(frozen=True, slots=True)
class SnapshotFacts:
    completed: tuple[ObservedSnapshot, ...]
    """The newest first."""
    is_pending: bool


@dataclass(frozen=True, slots=True)
class ImportDisk:
    """A volume that no row knows becomes a disk: not deleted, not in use by anybody we know."""

    volume: ObservedVolume
    snapshots: SnapshotFacts | None


@dataclass(frozen=True, slots=True)
class SyncDisk:
    """Write what the storage says into a row. Deletion, operations, last use and listing stay."""

    before: Disk
    after: Disk
    has_pending_snapshot: bool
    snapshots: tuple[ObservedSnapshot, ...] | None = None


Change = ImportDisk | SyncDisk


@dataclass(frozen=True, slots=True)
class ReconciliationPlan:
    changes: tuple[Change, ...]
    remarks: tuple[Fact, ...]
    """What a person should look at: tags that are missing, duplicates, volumes that are not there."""
    statistics: Statistics
    """As far as they are known before anything is written."""


def plan_reconciliation(
    rows: Sequence[LedgerRow],
    volumes: Sequence[ObservedVolume],
    snapshots: Sequence[ObservedSnapshot] | None,
) -> ReconciliationPlan:
    """`snapshots` is None if they could not be listed: then what is known of them stays."""
    remarks = [_untagged(volume) for volume in volumes if volume.tags is None]
    matched, strangers = _match(rows, volumes)
    facts = _SnapshotIndex(snapshots)
    changes: list[Change] = []
    for row in rows:
        own = matched.get(row.disk.id)
        if own:
            chosen, others = _choose(own, row.disk)
            remarks += [_duplicate(volume, chosen) for volume in others]
            changes += _sync(row, chosen, facts.of(row.disk, own))
    for same in strangers:
        chosen, others = _choose(same, None)
        remarks += [_duplicate(volume, chosen) for volume in others]
        changes.append(ImportDisk(chosen, facts.of_volume(chosen)))
    lost = [row for row in rows if row.disk.id not in matched and _should_have_volume(row, volumes)]
    changes += [change for row in lost for change in _free_lost(row)]
    remarks += [_missing(row.disk) for row in lost]
    return ReconciliationPlan(
        tuple(changes),
        tuple(remarks),
        Statistics(
            aws_volumes=len(volumes),
            db_records=len(rows),
            synced=len(matched),
            errors=1 if snapshots is None else 0,
            orphaned_db_active=len(lost),
            orphaned_db_deleted=sum(row.disk.state in DELETED and row.disk.id not in matched for row in rows),
        ),
    )


def _match(
    rows: Sequence[LedgerRow], volumes: Sequence[ObservedVolume]
) -> tuple[Mapping[DiskId, list[ObservedVolume]], list[list[ObservedVolume]]]:
    """The volumes of each row, and those of no row, together if they say that they are the same disk."""
    disks = [row.disk for row in rows if row.disk.state is not DiskState.PURGED]
    by_id = {disk.id: disk for disk in disks}
    by_volume = {disk.volume.volume_id: disk for disk in disks if disk.volume.volume_id}
    by_name = {(disk.spec.username, disk.spec.name): disk for disk in disks if not disk.is_deleted}
    matched: defaultdict[DiskId, list[ObservedVolume]] = defaultdict(list)
    strangers: defaultdict[tuple[str, str], list[ObservedVolume]] = defaultdict(list)
    for volume in volumes:
        tags = volume.tags
        if tags is None:
            continue
        key = (tags.username, tags.disk_name)
        known = (tags.disk_id and by_id.get(tags.disk_id)) or by_volume.get(volume.volume_id)
        disk = known or (by_name.get(key) if tags.disk_id is None else None)
        if disk is not None:
            matched[disk.id].append(volume)
        else:
            strangers[key].append(volume)
    return matched, list(strangers.values())


def _choose(volumes: list[ObservedVolume], disk: Disk | None) -> tuple[ObservedVolume, list[ObservedVolume]]:
    """The attached one, then the one that the row names, then the newest."""
    named = disk.volume.volume_id if disk else None
    ordered = sorted(
        volumes,
        key=lambda each: (bool(each.attached_to), each.volume_id == named, each.created_at, each.volume_id),
        reverse=True,
    )
    return ordered[0], ordered[1:]


def _sync(row: LedgerRow, volume: ObservedVolume, facts: SnapshotFacts | None) -> list[SyncDisk]:
    after = replace(
        row.disk,
        spec=replace(row.disk.spec, size_gb=volume.size_gb),
        volume=replace(row.disk.volume, is_attached=bool(volume.attached_to)),
    )
    if row.disk.state in {DiskState.AVAILABLE, DiskState.SOFT_DELETED}:
        # Another volume may have bytes that no snapshot has.
        is_other = row.disk.volume.volume_id != volume.volume_id
        is_dirty = after.volume.is_dirty or is_other
        named = replace(after.volume, volume_id=volume.volume_id, zone=volume.zone, is_dirty=is_dirty)
        after = replace(after, volume=named)
    if not volume.attached_to and _is_left_behind(row):
        after = _give_back(after)
    pending = row.has_pending_snapshot
    completed: tuple[ObservedSnapshot, ...] | None = None
    if facts is not None:
        pending, completed = facts.is_pending, facts.completed
        last = completed[0].started_at if completed else None
        kept = replace(after.snapshots, snapshot_count=len(completed), last_snapshot_at=last)
        after = replace(after, snapshots=kept)
    if after == row.disk and pending == row.has_pending_snapshot:
        return []
    return [SyncDisk(row.disk, after, pending, completed)]


def _is_left_behind(row: LedgerRow) -> bool:
    """Its reservation is over and cleaned away, and still the row says that it has the disk."""
    return row.disk.state in HELD and not row.is_held_by_live and row.is_holder_clean


def _give_back(disk: Disk) -> Disk:
    """Free, by way of a snapshot if somebody may have written to it."""
    if disk.volume.is_dirty:
        return replace(begin_snapshot(disk), state=DiskState.SNAPSHOTTING, reservation_id=None)
    return replace(disk, state=DiskState.AVAILABLE, reservation_id=None)


def _should_have_volume(row: LedgerRow, volumes: Iterable[ObservedVolume]) -> bool:
    """Not one whose volume is still to be made, nor one whose volume only lacks its tags."""
    disk = row.disk
    is_expected = disk.volume.volume_id is not None and disk.state not in DELETED
    return is_expected and all(volume.volume_id != disk.volume.volume_id for volume in volumes)


def _free_lost(row: LedgerRow) -> list[SyncDisk]:
    """Not in use, and nobody's; unless a live reservation is about to have it, and finds out for itself."""
    disk = row.disk
    if row.is_held_by_live or not row.is_holder_clean:
        return []
    state = DiskState.AVAILABLE if disk.state in _ON_ITS_WAY else disk.state
    volume = replace(disk.volume, is_attached=False)
    after = replace(disk, state=state, reservation_id=None, volume=volume)
    return [SyncDisk(disk, after, has_pending_snapshot=False)] if after != disk else []


class _SnapshotIndex:
    """Finds the snapshots of a disk by its id, its volumes, or, for those without an id, by its name."""

    def __init__(self, snapshots: Sequence[ObservedSnapshot] | None) -> None:
        self._is_known = snapshots is not None
        self._by_disk: defaultdict[object, list[ObservedSnapshot]] = defaultdict(list)
        for snapshot in snapshots or ():
            self._by_disk[snapshot.volume_id].append(snapshot)
            if snapshot.tags is not None:
                key = snapshot.tags.disk_id or (snapshot.tags.username, snapshot.tags.disk_name)
                self._by_disk[key].append(snapshot)

    def of(self, disk: Disk, volumes: Sequence[ObservedVolume]) -> SnapshotFacts | None:
        name = (disk.spec.username, disk.spec.name)
        return self._gather(disk.id, *([] if disk.is_deleted else [name]), *(v.volume_id for v in volumes))

    def of_volume(self, volume: ObservedVolume) -> SnapshotFacts | None:
        tags = volume.tags
        named = [tags.disk_id or (tags.username, tags.disk_name)] if tags else []
        return self._gather(volume.volume_id, *named)

    def _gather(self, *keys: object) -> SnapshotFacts | None:
        if not self._is_known:
            return None
        found = {each.snapshot_id: each for key in keys for each in self._by_disk[key]}
        completed = (each for each in found.values() if each.is_completed)
        newest_first = sorted(completed, key=lambda each: (each.started_at, each.snapshot_id), reverse=True)
        is_pending = any(each.phase is SnapshotPhase.PENDING for each in found.values())
        return SnapshotFacts(tuple(newest_first), is_pending)


def _untagged(volume: ObservedVolume) -> Fact:
    return fact("volume_untagged", volume=volume.volume_id)


def _duplicate(volume: ObservedVolume, chosen: ObservedVolume) -> Fact:
    return fact("volume_duplicate", volume=volume.volume_id, chosen=chosen.volume_id)


def _missing(disk: Disk) -> Fact:
    return fact(
        "volume_missing", volume=disk.volume.volume_id, name=disk.spec.name, username=disk.spec.username
    )


def _list_compared(disk: Disk) -> dict[str, Any]:
    return {
        "state": disk.state,
        "reservation_id": disk.reservation_id,
        "volume_id": disk.volume.volume_id,
        "size_gb": disk.spec.size_gb,
        "is_attached": disk.volume.is_attached,
        "snapshot_count": disk.snapshots.snapshot_count,
        "last_snapshot_at": disk.snapshots.last_snapshot_at,
    }


def describe_change(change: Change) -> Fact:
    """What would be done, for a person."""
    if isinstance(change, ImportDisk):
        tags = change.volume.tags
        name, username = (tags.disk_name, tags.username) if tags else ("", "")
        return fact("disk_would_be_imported", volume=change.volume.volume_id, name=name, username=username)
    before, after = change.before, change.after
    changes = [
        {"field": name, "before": old, "after": new}
        for (name, old), new in zip(
            _list_compared(before).items(), _list_compared(after).values(), strict=True
        )
        if old != new
    ]
    return fact("disk_would_be_synced", name=before.spec.name, username=before.spec.username, changes=changes)
