"""Rows to disks and back: the one place that knows which column is which field of theirs."""

from __future__ import annotations

from typing import Any

from gpudev.adapters.postgres.pool import Row
from gpudev.domain.disk import Disk, DiskEvent, DiskId, DiskOperation, SnapshotId, VolumeId
from gpudev.domain.names import OperationId, ReservationId, UserId
from gpudev.domain.plans.disk_actions import RecordDisk
from gpudev.ports.disks import DiskClaim, StoredContent, StoredDiskOperation, StoredSnapshot
from gpudev.ports.turns import Lease
from gpudev.texts.fact import find_fact, parse_fact
from gpudev.texts.vocabulary import DiskEventKind, DiskOperationKind, DiskState, OperationStatus

_AS_IT_IS = (
    "username",
    "name",
    "size_gb",
    "created_at",
    "zone",
    "is_dirty",
    "snapshot_number",
    "snapshot_count",
    "last_snapshot_at",
    "last_used",
    "released_at",
    "deleted_at",
    "delete_date",
    "is_attached",
    "operation_status",
    "version",
)


def disk_from(row: Row) -> Disk:
    return Disk(
        id=DiskId(str(row["disk_id"])),
        user_id=UserId(row["user_id"]),
        state=DiskState(row["state"]),
        problem=find_fact(row["problem"]),
        reservation_id=_id(row["reservation_id"], ReservationId),
        volume_id=_id(row["ebs_volume_id"], VolumeId),
        source_disk_id=_id(row["source_disk_id"], DiskId),
        source_snapshot_id=_id(row["source_snapshot_id"], SnapshotId),
        operation_id=_id(row["operation_id"], OperationId),
        named_by=_id(row["named_by"], ReservationId),
        **{name: row[name] for name in _AS_IT_IS},
    )


def _id(value: object, kind: Any) -> Any:
    return None if value is None else kind(str(value))


def claim_from(row: Row, lease: Lease) -> DiskClaim:
    names = ("ids", "kinds", "times", "sizes")
    columns = zip(*(row[f"operation_{name}"] or () for name in names), strict=True)
    return DiskClaim(
        lease=lease,
        disk=disk_from(row),
        operations=tuple(
            DiskOperation(OperationId(str(id_)), DiskOperationKind(kind), at, size)
            for id_, kind, at, size in columns
        ),
        wanted_snapshots=frozenset(map(SnapshotId, row["wanted_snapshots"])),
    )


def record_values(record: RecordDisk, lease_token: str | None) -> tuple[Any, ...]:
    after, event = record.after, record.event
    return (
        after.id,
        record.before.version,
        lease_token,
        after.state,
        after.name,
        after.size_gb,
        after.reservation_id,
        after.volume_id,
        after.zone,
        after.source_disk_id,
        after.source_snapshot_id,
        after.is_dirty,
        after.snapshot_number,
        after.snapshot_count,
        after.last_snapshot_at,
        after.last_used,
        after.released_at,
        after.deleted_at,
        after.delete_date,
        after.problem,
        record.at,
        event.kind if event else None,
        event.fact if event else None,
        [outcome.operation_id for outcome in record.outcomes],
        [outcome.status for outcome in record.outcomes],
        [outcome.error for outcome in record.outcomes],
        record.is_ready and after.reservation_id is not None,
        record.frees,
    )


def snapshot_from(row: Row) -> StoredSnapshot:
    return StoredSnapshot(
        snapshot_id=SnapshotId(row["snapshot_id"]),
        volume_id=VolumeId(row["ebs_volume_id"]),
        started_at=row["started_at"],
        size_gb=row["size_gb"],
        used_bytes=row["used_bytes"],
    )


def content_from(row: Row) -> StoredContent:
    return StoredContent(SnapshotId(row["snapshot_id"]), row["started_at"], row["content"], row["content_s3"])


def event_from(row: Row) -> DiskEvent:
    return DiskEvent(DiskEventKind(row["kind"]), parse_fact(row["fact"]), row["at"])


def operation_from(row: Row) -> StoredDiskOperation:
    return StoredDiskOperation(
        operation_id=OperationId(str(row["operation_id"])),
        disk_id=DiskId(str(row["disk_id"])),
        disk_name=row["name"],
        kind=DiskOperationKind(row["kind"]),
        status=OperationStatus(row["status"]),
        error=find_fact(row["error"]),
        requested_at=row["requested_at"],
        finished_at=row["finished_at"],
        is_deleted=row["is_deleted"],
        delete_date=row["delete_date"],
    )
