"""Disks of the rules as disks of the wire."""

from __future__ import annotations

from datetime import tzinfo

from gpudev.api.views import say_if
from gpudev.app.disks import StoredDiskOperation, StoredSnapshot
from gpudev.domain.disk import Disk, DiskOperation
from gpudev.texts.fact import Fact
from gpudev.texts.sentences import say
from gpudev.texts.vocabulary import OperationStatus
from gpudev.wire.disks import DiskActionResponse, DiskInfo, DiskOperationDetail, SnapshotInfo
from gpudev.wire.jobs import OperationDetail

_GB = 1_000_000_000
_MB = 1_000_000

_STATUS_OF_DISKS = {OperationStatus.DONE: "completed"}
"""What clients of version 0.3 wait for on the routes of disks."""


def disk_info(disk: Disk, zone: tzinfo, snapshots: tuple[StoredSnapshot, ...] = ()) -> DiskInfo:
    used = snapshots[0].used_bytes if snapshots else None
    return DiskInfo(
        disk_name=disk.spec.name,
        user_id=disk.spec.username,
        size_gb=disk.spec.size_gb,
        created_at=disk.spec.created_at,
        in_use=disk.in_use,
        is_backing_up=disk.is_backing_up,
        is_deleted=disk.is_deleted,
        snapshot_count=disk.snapshots.snapshot_count,
        state=disk.state,
        disk_size=_describe_size(used) if used is not None else None,
        last_used=disk.last_used,
        reservation_id=disk.named_by or disk.reservation_id,
        delete_date=disk.delete_date,
        last_snapshot_at=disk.snapshots.last_snapshot_at,
        volume_id=disk.volume.volume_id,
        problem=say_if(disk.problem, zone),
    )


def action(operation: DiskOperation, disk_name: str, answer: Fact, zone: tzinfo) -> DiskActionResponse:
    return DiskActionResponse(
        operation_id=operation.operation_id,
        disk_name=disk_name,
        action=operation.kind,
        message=say(answer, zone),
        requested_at=operation.requested_at,
    )


def snapshot_info(snapshot: StoredSnapshot) -> SnapshotInfo:
    return SnapshotInfo(
        snapshot_id=snapshot.snapshot_id,
        created_at=snapshot.started_at,
        volume_id=snapshot.volume_id,
        size_gb=snapshot.size_gb or None,
        used_bytes=snapshot.used_bytes,
    )


def operation_detail(operation: StoredDiskOperation, zone: tzinfo) -> DiskOperationDetail:
    return DiskOperationDetail(
        operation_id=operation.operation_id,
        disk_name=operation.disk_name,
        action=operation.kind,
        status=_STATUS_OF_DISKS.get(operation.status, operation.status),
        is_deleted=operation.is_deleted,
        created_at=operation.requested_at,
        last_updated=operation.finished_at or operation.requested_at,
        completed=operation.status is not OperationStatus.REQUESTED,
        error=say_if(operation.error, zone),
        delete_date=operation.delete_date,
        disk_version=operation.disk_version,
    )


def any_operation_detail(operation: StoredDiskOperation, zone: tzinfo) -> OperationDetail:
    """The same where operations of every kind are asked for."""
    return OperationDetail(
        operation_id=operation.operation_id,
        action=operation.kind,
        status=operation.status,
        started_at=operation.requested_at,
        error=say_if(operation.error, zone),
        finished_at=operation.finished_at,
    )


def _describe_size(count: int) -> str:
    return f"{count / _GB:.1f} GB" if count >= _GB else f"{count / _MB:.1f} MB"
