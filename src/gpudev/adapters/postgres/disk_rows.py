"""Rows to disks and back: the one place that knows which column is which field of theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from operator import itemgetter
from typing import Any, TypeVar

from gpudev.adapters.postgres.pool import Row
from gpudev.domain.disk import (
    Disk,
    DiskEvent,
    DiskId,
    DiskOperation,
    DiskSpec,
    DiskVolume,
    SnapshotId,
    Snapshots,
    VolumeId,
)
from gpudev.domain.names import OperationId, ReservationId
from gpudev.ports.disks import DiskClaim, StoredContent, StoredDiskOperation, StoredSnapshot
from gpudev.ports.turns import Lease
from gpudev.texts.fact import find_fact, parse_fact
from gpudev.texts.vocabulary import DiskEventKind, DiskOperationKind, DiskState, OperationStatus

_Part = TypeVar("_Part", Disk, DiskSpec, DiskVolume, Snapshots)

_NOT_AS_STORED: Mapping[str, Callable[[Row], Any]] = {
    "id": lambda row: DiskId(str(row["disk_id"])),
    "state": lambda row: DiskState(row["state"]),
    "problem": lambda row: find_fact(row["problem"]),
    "reservation_id": lambda row: _id(row["reservation_id"], ReservationId),
    "named_by": lambda row: _id(row["named_by"], ReservationId),
    "operation_id": lambda row: _id(row["operation_id"], OperationId),
    "source_disk_id": lambda row: _id(row["source_disk_id"], DiskId),
    "volume_id": lambda row: _id(row["ebs_volume_id"], VolumeId),
    "spec": lambda row: _part_from(DiskSpec, row),
    "volume": lambda row: _part_from(DiskVolume, row),
    "snapshots": lambda row: _part_from(Snapshots, row),
}
"""Fields that are not simply the value of the column of their name."""


def disk_from(row: Row) -> Disk:
    return _part_from(Disk, row)


def _part_from(kind: type[_Part], row: Row) -> _Part:
    readers = ((each.name, _NOT_AS_STORED.get(each.name, itemgetter(each.name))) for each in fields(kind))
    return kind(**{name: read(row) for name, read in readers})


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
        disk_version=row["disk_version"],
    )
