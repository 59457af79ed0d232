"""What to do about one disk, given everything that is known of it.

A reservation takes a disk in its own placement (`plans/admission.py`), and owners delete, rename and restore
by guarded writes of the API. What follows from those is decided here, by the state that the disk is in.

Tags are a matter of level: whatever should be said on a volume or a snapshot and is not, is said again, so
that an interrupted rename repairs itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from gpudev.domain.disk import DiskOperation, is_purgeable, move
from gpudev.domain.operations import OperationOutcome
from gpudev.domain.plans.disk_attachment import (
    describe_failed,
    find_or_adopt,
    first_volume,
    plan_attaching,
    plan_in_use,
    plan_releasing,
    plan_snapshotting,
)
from gpudev.domain.plans.disk_turn import (
    CreateVolume,
    DeleteSnapshot,
    DeleteVolume,
    DiskObservation,
    DiskPlan,
    GrowVolume,
    RecordDisk,
    SetTags,
    describe_lost,
    note_problem,
)
from gpudev.domain.plans.turn import LookAgain
from gpudev.domain.proofs import ExpiredSoftDelete, Replaced, Superseded, is_superseded
from gpudev.domain.volume import VolumePhase, tags_of
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import DiskEventKind, DiskOperationKind, DiskState, OperationStatus


def _plan_creating(seen: DiskObservation) -> DiskPlan:
    if seen.disk.spec.source_disk_id and not seen.disk.spec.source_snapshot_id:
        # The snapshot that it is to be a copy of is under way; the turn of the source names it here.
        return (LookAgain(seen.now + seen.policy.retry),)
    volume = find_or_adopt(seen)
    if volume is None:
        return (CreateVolume(first_volume(seen.disk, seen.disk.volume.zone)), seen.look_again())
    if volume.phase is VolumePhase.MAKING:
        return (seen.look_again(),)
    if volume.phase is VolumePhase.FAILED:
        return note_problem(seen, describe_failed(volume))
    # A copy has no snapshot of its own, though all its bytes are in its source's.
    is_copy = seen.disk.spec.source_snapshot_id is not None
    disk = move(seen.disk, DiskState.AVAILABLE)
    after = replace(
        disk,
        spec=replace(disk.spec, size_gb=volume.size_gb, source_disk_id=None),
        volume=replace(disk.volume, volume_id=volume.volume_id, zone=volume.zone, is_dirty=is_copy),
    )
    record = seen.record(after, DiskEventKind.CREATED, fact("disk_volume_ready", volume=volume.volume_id))
    return (replace(record, outcomes=_done(seen)),)


def _plan_attaching(seen: DiskObservation) -> DiskPlan:
    return _plan_retagging(seen) or (*_plan_replaced(seen), *plan_attaching(seen))


def _plan_in_use(seen: DiskObservation) -> DiskPlan:
    return (*_plan_replaced(seen), *plan_in_use(seen))


def _plan_available(seen: DiskObservation) -> DiskPlan:
    if retagging := _plan_retagging(seen):
        return retagging
    if growth := _plan_growth(seen):
        return growth
    if seen.operations:
        return (RecordDisk(seen.disk, seen.disk, seen.now, outcomes=_done(seen)),)
    return (*_plan_replaced(seen), *_plan_pruning(seen))


def _plan_growth(seen: DiskObservation) -> DiskPlan:
    wanted = max((asked.size_gb or 0 for asked in _list_asked(seen, DiskOperationKind.GROW)), default=0)
    if not wanted:
        return ()
    disk = seen.disk
    volume = seen.holdings.find_volume(disk.volume.volume_id)
    if volume is None and disk.volume.volume_id is not None:
        return note_problem(seen, describe_lost(disk, seen.holdings))
    if volume is not None and volume.size_gb < wanted:
        return (GrowVolume(volume.volume_id, wanted), seen.look_again())
    spec = replace(disk.spec, size_gb=max(wanted, disk.spec.size_gb))
    after = replace(disk, spec=spec, problem=None)
    record = seen.record(after, DiskEventKind.GROWN, fact("disk_grown", size=wanted))
    return (replace(record, outcomes=_done(seen)),)


def _plan_retagging(seen: DiskObservation) -> DiskPlan:
    wanted = tags_of(seen.disk)
    volumes = tuple(each.volume_id for each in seen.holdings.volumes if each.tags != wanted)
    snapshots = tuple(each.snapshot_id for each in seen.holdings.snapshots if each.tags != wanted)
    if not volumes and not snapshots:
        return ()
    return (SetTags(volumes, snapshots, wanted),)


def _plan_replaced(seen: DiskObservation) -> DiskPlan:
    """Volumes that the disk has left, if it can be shown that nothing is lost with them."""
    present = seen.holdings.find_volume(seen.disk.volume.volume_id)
    if present is None or present.phase is not VolumePhase.READY or present.source_snapshot_id is None:
        return ()
    source = present.source_snapshot_id
    last_of = {each.volume_id: each.snapshot_id for each in reversed(seen.holdings.completed)}
    return tuple(
        DeleteVolume(volume.volume_id, Replaced(seen.disk, volume.volume_id, source, seen.holdings))
        for volume in seen.holdings.volumes
        if volume is not present and not volume.attached_to and last_of.get(volume.volume_id) == source
    )


def _plan_pruning(seen: DiskObservation) -> DiskPlan:
    return tuple(
        DeleteSnapshot(each.snapshot_id, Superseded(each.snapshot_id, seen.holdings, seen.now))
        for each in seen.holdings.completed
        if each.snapshot_id not in seen.wanted_snapshots
        and is_superseded(each.snapshot_id, seen.holdings, seen.now)
    )


def _plan_soft_deleted(seen: DiskObservation) -> DiskPlan:
    disk = seen.disk
    if retagging := _plan_retagging(seen):
        return retagging
    if seen.operations:
        return (RecordDisk(disk, disk, seen.now, outcomes=_done(seen)),)
    if is_purgeable(disk, seen.now):
        purging = move(disk, DiskState.PURGING)
        return (seen.record(purging, DiskEventKind.PURGED, fact("disk_purge_due")),)
    return (LookAgain(disk.delete_date),) if disk.delete_date else ()


def _plan_purging(seen: DiskObservation) -> DiskPlan:
    """A volume that a machine has is left alone even now."""
    if not seen.holdings.volumes and not seen.holdings.snapshots:
        purged = move(seen.disk, DiskState.PURGED)
        record = seen.record(purged, DiskEventKind.PURGED, fact("disk_purge_complete"))
        return (replace(record, snapshots=()),)
    if held := [volume for volume in seen.holdings.volumes if volume.attached_to]:
        volume, holder = held[0].volume_id, held[0].attached_to
        return note_problem(seen, fact("disk_attached_at_purge", volume=volume, holder=holder))
    proof = ExpiredSoftDelete(seen.disk, seen.now)
    return (
        *(DeleteSnapshot(each.snapshot_id, proof) for each in seen.holdings.snapshots),
        *(DeleteVolume(each.volume_id, proof) for each in seen.holdings.volumes),
        seen.look_again(),
    )


def _list_asked(seen: DiskObservation, kind: DiskOperationKind) -> list[DiskOperation]:
    return [asked for asked in seen.operations if asked.kind is kind]


def _done(seen: DiskObservation) -> tuple[OperationOutcome, ...]:
    return tuple(OperationOutcome(asked.operation_id, OperationStatus.DONE) for asked in seen.operations)


_PLAN_OF: Mapping[DiskState, Callable[[DiskObservation], DiskPlan]] = MappingProxyType(
    {
        DiskState.CREATING: _plan_creating,
        DiskState.AVAILABLE: _plan_available,
        DiskState.ATTACHING: _plan_attaching,
        DiskState.IN_USE: _plan_in_use,
        DiskState.RELEASING: plan_releasing,
        DiskState.SNAPSHOTTING: plan_snapshotting,
        DiskState.SOFT_DELETED: _plan_soft_deleted,
        DiskState.PURGING: _plan_purging,
        DiskState.PURGED: lambda _seen: (),
    }
)


def plan_disk(seen: DiskObservation) -> DiskPlan:
    return _PLAN_OF[seen.disk.state](seen)
