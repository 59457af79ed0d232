"""From the end of a reservation to a disk that is free again: the server gone, a complete snapshot.

Nothing here is in anybody's way: GPUs are free before it begins, and who waits for this very disk waits in
the queue without holding anything.
"""

from __future__ import annotations

from dataclasses import replace

from gpudev.domain.disk import begin_snapshot, let_go, move
from gpudev.domain.plans.actions import LookAgain
from gpudev.domain.plans.disk_actions import CreateSnapshot, KeepListing, RecordDisk
from gpudev.domain.plans.disk_observation import (
    DiskObservation,
    DiskPlan,
    describe_lost,
    note_problem,
    snapshot_token,
)
from gpudev.domain.volume import ObservedSnapshot, SnapshotPhase, SnapshotSpec, tags_of
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import DiskEventKind, DiskState


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
