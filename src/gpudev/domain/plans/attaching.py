"""From a disk that was taken to one that a server can mount: a volume in the right zone, held by nobody.

A volume moves zone by a complete snapshot and a new volume of that; the row names the new one before the old
one goes.
"""

from __future__ import annotations

from dataclasses import replace

from gpudev.domain.disk import Disk, let_go, move
from gpudev.domain.plans.disk_actions import CreateSnapshot, CreateVolume, RecordDisk
from gpudev.domain.plans.disk_observation import DiskObservation, DiskPlan, describe_lost, note_problem
from gpudev.domain.volume import (
    ObservedSnapshot,
    ObservedVolume,
    SnapshotPhase,
    SnapshotSpec,
    VolumePhase,
    VolumeSpec,
    tags_of,
)
from gpudev.texts.fact import Fact, fact
from gpudev.texts.vocabulary import DiskEventKind, DiskState


def plan_attaching(seen: DiskObservation) -> DiskPlan:
    if not seen.is_wanted:
        return _plan_return(seen)
    volume = find_or_adopt(seen)
    if volume is not None:
        return _plan_found(seen, volume)
    if seen.disk.volume.volume_id is not None:
        return note_problem(seen, describe_lost(seen.disk, seen.holdings))
    return (CreateVolume(first_volume(seen.disk, seen.zone)), seen.look_again())


def _plan_found(seen: DiskObservation, volume: ObservedVolume) -> DiskPlan:
    if volume.phase is VolumePhase.MAKING:
        return (seen.look_again(),)
    if volume.phase is VolumePhase.FAILED:
        return note_problem(seen, describe_failed(volume))
    if volume.attached_to:
        return _plan_foreign_hold(seen, volume)
    if seen.zone and volume.zone and volume.zone != seen.zone:
        return _plan_move(seen, volume)
    return (_make_ready(seen, volume),)


def find_or_adopt(seen: DiskObservation) -> ObservedVolume | None:
    """The volume that the row names; before it names any, the first that was made for it."""
    if seen.disk.volume.volume_id is not None:
        return seen.holdings.find_volume(seen.disk.volume.volume_id)
    made = sorted(seen.holdings.volumes, key=lambda volume: (volume.created_at, volume.volume_id))
    return made[0] if made else None


def first_volume(disk: Disk, zone: str) -> VolumeSpec:
    return VolumeSpec(
        f"{disk.id}/first", tags_of(disk), disk.spec.size_gb, zone, disk.spec.source_snapshot_id
    )


def describe_failed(volume: ObservedVolume) -> Fact:
    return fact("disk_volume_failed", volume=volume.volume_id)


def _plan_return(seen: DiskObservation) -> DiskPlan:
    """Its reservation went before any server was asked for, so nobody has written to it."""
    if seen.has_server:
        return (seen.look_again(),)
    after = let_go(seen.disk)
    return (seen.record(after, DiskEventKind.RELEASED, fact("disk_unused")),)


def _plan_foreign_hold(seen: DiskObservation, volume: ObservedVolume) -> DiskPlan:
    """Somebody else has it: to mount it twice would ruin it."""
    why = fact("disk_attached_elsewhere", volume=volume.volume_id, holder=volume.attached_to)
    return note_problem(seen, why)


def _make_ready(seen: DiskObservation, volume: ObservedVolume) -> RecordDisk:
    """From here on a server may write to it."""
    disk = move(seen.disk, DiskState.IN_USE)
    after = replace(
        disk,
        spec=replace(disk.spec, size_gb=volume.size_gb),
        volume=replace(disk.volume, volume_id=volume.volume_id, zone=volume.zone, is_dirty=True),
        last_used=seen.now,
    )
    reservation_id = seen.disk.reservation_id or ""
    ready = fact("disk_volume_ready_for", volume=volume.volume_id, reservation=reservation_id)
    return seen.record(after, DiskEventKind.ATTACHED, ready)


def _plan_move(seen: DiskObservation, volume: ObservedVolume) -> DiskPlan:
    source = _find_source(seen, volume)
    if source is None:
        spec = SnapshotSpec(_move_token(seen.disk), volume.volume_id, tags_of(seen.disk))
        return (CreateSnapshot(spec), seen.look_again())
    if source.phase is SnapshotPhase.FAILED:
        why = fact(
            "disk_move_failed",
            snapshot=source.snapshot_id,
            volume=volume.volume_id,
            detail=source.detail,
        )
        return note_problem(seen, why)
    if not source.is_completed:
        return (seen.look_again(),)
    return _plan_new_volume(seen, source)


def _find_source(seen: DiskObservation, volume: ObservedVolume) -> ObservedSnapshot | None:
    """A snapshot that has every byte: begun for this very move, or the last one of a clean disk."""
    own = seen.holdings.find_snapshot(_move_token(seen.disk))
    if own is not None or seen.disk.volume.is_dirty:
        return own
    return next((each for each in seen.holdings.completed if each.volume_id == volume.volume_id), None)


def _plan_new_volume(seen: DiskObservation, source: ObservedSnapshot) -> DiskPlan:
    disk = seen.disk
    target = next(
        (
            volume
            for volume in seen.holdings.volumes
            if volume.zone == seen.zone and volume.source_snapshot_id == source.snapshot_id
        ),
        None,
    )
    if target is None:
        token = f"{disk.id}/{seen.zone}/{source.snapshot_id}"
        spec = VolumeSpec(token, tags_of(disk), disk.spec.size_gb, seen.zone, source.snapshot_id)
        return (CreateVolume(spec), seen.look_again())
    if target.phase is VolumePhase.MAKING:
        return (seen.look_again(),)
    if target.phase is VolumePhase.FAILED:
        return note_problem(seen, describe_failed(target))
    volume = replace(disk.volume, volume_id=target.volume_id, zone=target.zone, is_dirty=False)
    after = replace(disk, volume=volume, problem=None)
    moved = fact("disk_moved", source=disk.volume.zone, target=target.zone, snapshot=source.snapshot_id)
    return (seen.record(after, DiskEventKind.MOVED, moved),)


def _move_token(disk: Disk) -> str:
    return f"{disk.id}/move/{disk.reservation_id}"
