"""How a disk comes to a server and back.

Before a server can mount it, its volume is in the right zone and held by nobody. A volume moves zone by a
complete snapshot and a new volume of that; the row names the new one before the old one goes. After the
reservation the disk is free once the server is gone and a snapshot is complete. Nobody has to wait for
that: GPUs are free before it begins, and who wants this very disk waits in the queue without holding
anything.
"""

from __future__ import annotations

from dataclasses import replace

from gpudev.domain.disk import Disk, begin_snapshot, let_go, move
from gpudev.domain.plans.disk_turn import (
    CreateSnapshot,
    CreateVolume,
    DiskObservation,
    DiskPlan,
    KeepListing,
    RecordDisk,
    describe_lost,
    note_problem,
    snapshot_token,
)
from gpudev.domain.plans.turn import LookAgain
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
    """A reservation that is stopped may move its disk again: with the number it is for one run of it."""
    return f"{disk.id}/move/{disk.reservation_id}/{disk.snapshots.snapshot_number}"


def plan_in_use(seen: DiskObservation) -> DiskPlan:
    if seen.is_wanted:
        return ()
    after = replace(move(seen.disk, DiskState.RELEASING), released_at=seen.now, last_used=seen.now)
    over = fact("disk_reservation_over", reservation=seen.disk.reservation_id or "")
    return (seen.record(after, DiskEventKind.RELEASED, over),)


def plan_releasing(seen: DiskObservation) -> DiskPlan:
    volume = seen.holdings.find_volume(seen.disk.volume.volume_id)
    if volume is None:
        return _plan_lost(seen)
    if seen.has_server or volume.attached_to:
        return _plan_hold(seen, volume.attached_to)
    if volume.is_blank:
        return (_give_back_blank(seen),)
    after = begin_snapshot(move(seen.disk, DiskState.SNAPSHOTTING))
    begun = fact("disk_snapshot_begun", volume=volume.volume_id)
    return (seen.record(after, DiskEventKind.SNAPSHOT, begun),)


def plan_snapshotting(seen: DiskObservation) -> DiskPlan:
    disk = seen.disk
    snapshot = seen.holdings.find_snapshot(snapshot_token(disk))
    if snapshot is None:
        volume = seen.holdings.find_volume(disk.volume.volume_id)
        if volume is None:
            return _plan_lost(seen)
        if volume.is_blank:
            return (_give_back_blank(seen),)
        return (
            CreateSnapshot(SnapshotSpec(snapshot_token(disk), volume.volume_id, tags_of(disk))),
            seen.look_again(),
        )
    match snapshot.phase:
        case SnapshotPhase.PENDING:
            return (seen.look_again(),)
        case SnapshotPhase.FAILED:
            return _plan_another(seen, snapshot)
        case SnapshotPhase.COMPLETED:
            return (_make_free(seen, snapshot), KeepListing(disk, snapshot))


def _plan_hold(seen: DiskObservation, holder: str) -> DiskPlan:
    """Wait for it to be let go; to take it away from a machine that may write would lose what is written."""
    since = seen.disk.released_at or seen.now
    if seen.now - since < seen.policy.detach_limit:
        return (seen.look_again(),)
    volume, minutes = seen.disk.volume.volume_id, round(seen.policy.detach_limit.total_seconds() / 60)
    if not holder:
        return note_problem(seen, fact("disk_not_detached_from_server", volume=volume, minutes=minutes))
    return note_problem(seen, fact("disk_not_detached", volume=volume, holder=holder, minutes=minutes))


def _plan_another(seen: DiskObservation, failed: ObservedSnapshot) -> DiskPlan:
    problem = fact(
        "disk_snapshot_failed",
        snapshot=failed.snapshot_id,
        volume=seen.disk.volume.volume_id,
        detail=failed.detail,
    )
    after = replace(begin_snapshot(seen.disk), problem=problem)
    return (
        seen.record(after, DiskEventKind.PROBLEM, problem),
        LookAgain(seen.now + seen.policy.retry),
    )


def _make_free(seen: DiskObservation, snapshot: ObservedSnapshot) -> RecordDisk:
    completed = seen.holdings.completed
    volume = seen.holdings.find_volume(seen.disk.volume.volume_id)
    free = let_go(seen.disk)
    # Some are given their place by the first server that mounts them.
    zone = volume.zone if volume else seen.disk.volume.zone
    kept = replace(free.snapshots, snapshot_count=len(completed), last_snapshot_at=snapshot.started_at)
    after = replace(free, volume=replace(free.volume, is_dirty=False, zone=zone), snapshots=kept)
    complete = fact("disk_snapshot_complete", snapshot=snapshot.snapshot_id)
    return replace(seen.record(after, DiskEventKind.SNAPSHOT, complete), snapshots=completed)


def _give_back_blank(seen: DiskObservation) -> RecordDisk:
    """Its server never came as far as to mount it, so there is nothing to take a snapshot of."""
    free = let_go(seen.disk)
    after = replace(free, volume=replace(free.volume, is_dirty=False))
    return seen.record(after, DiskEventKind.RELEASED, fact("disk_unused"))


def _plan_lost(seen: DiskObservation) -> DiskPlan:
    """There is nothing to take a snapshot of. The row goes on naming the volume, so none is made instead."""
    problem = describe_lost(seen.disk, seen.holdings)
    after = replace(let_go(seen.disk), problem=problem)
    return (seen.record(after, DiskEventKind.PROBLEM, problem),)
