"""Disks on the wire. The text under a field is its description in the OpenAPI document."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from gpudev.texts.vocabulary import DiskOperationKind, DiskState
from gpudev.wire.message import message
from gpudev.wire.text import DiskSize, Text, Word

DiskName = Annotated[str, Text(200, pattern="^[A-Za-z0-9_-]{1,50}$")]
RestoredName = Annotated[str, Text(200, pattern="^[A-Za-z0-9_-]{0,50}$")]
DiskAction = Annotated[str, Word(*DiskOperationKind)]


@message
class CreateDiskRequest:
    disk_name: DiskName
    """`[A-Za-z0-9_-]{1,50}`, unique among one's disks that are not deleted."""
    size_gb: DiskSize | None = None
    """10 to 10000. Left out: 100."""


@message
class RenameDiskRequest:
    new_name: DiskName
    """What it is called from now on."""


@message
class CloneDiskRequest:
    new_name: DiskName
    """Name of the copy."""


@message
class GrowDiskRequest:
    size_gb: DiskSize
    """More than it has."""


@message
class RestoreDiskRequest:
    new_name: RestoredName | None = None
    """What it is called from now on. Left out: as before."""


@message
class DiskInfo:
    """A disk as its owner sees it. What is not known is left out of the JSON, never null."""

    disk_name: str
    """What its owner calls it."""
    user_id: str
    """The username of its owner."""
    size_gb: int
    """How big it was asked for."""
    created_at: datetime
    """When it was made."""
    in_use: bool
    """Whether a reservation has it or asks for it."""
    is_backing_up: bool
    """Whether a snapshot of it is being made."""
    is_deleted: bool
    """Whether it is deleted; until `delete_date` it can be restored."""
    snapshot_count: int
    """How many snapshots there are."""
    state: Annotated[str, Word(*DiskState)]
    """Where it is."""
    disk_size: str | None = None
    """How much of it is used, by its newest snapshot."""
    last_used: datetime | None = None
    """When a reservation had it last."""
    reservation_id: str | None = None
    """The reservation that has it or asks for it."""
    delete_date: datetime | None = None
    """When a deleted disk is gone for good."""
    last_snapshot_at: datetime | None = None
    """When its newest snapshot was made."""
    volume_id: str | None = None
    """Where its bytes are."""
    problem: str | None = None
    """What keeps it from going on."""


@message
class DiskList:
    disks: list[DiskInfo]
    """By name."""
    total: int
    """How many there are."""


@message
class DiskActionResponse:
    """A requested action; follow it at `/v1/disks/{name}/operations/{operation_id}`."""

    operation_id: str
    """By which its outcome can be asked for."""
    disk_name: str
    """The disk that it is about; a copy has the name that was asked for."""
    action: DiskAction
    """What was requested."""
    message: str
    """The same in words."""
    requested_at: datetime
    """When it was requested."""


@message
class RenamedDisk:
    message: str
    """What was done."""
    old_name: str
    """What it was called."""
    new_name: str
    """What it is called now."""
    snapshots_updated: int
    """How many snapshots say the new name."""
    errors: list[str] | None = None
    """What is still to be done; it is done by itself."""


@message
class DiskContent:
    disk_name: str
    """The disk."""
    content: str
    """A line for each file: size in bytes, date, path."""
    message: str | None = None
    """Why there is no content; left out where there is some."""
    snapshot_date: datetime | None = None
    """When the snapshot was made that it is of."""


@message
class SnapshotInfo:
    snapshot_id: str
    """As the storage calls it."""
    created_at: datetime
    """When it was begun."""
    volume_id: str
    """The volume that it is of."""
    size_gb: int | None = None
    """Size of that volume."""
    used_bytes: int | None = None
    """How much of it the files take."""


@message
class SnapshotList:
    snapshots: list[SnapshotInfo]
    """The newest first."""
    total: int
    """How many there are."""


@message
class DiskOperationDetail:
    operation_id: str
    """Id of the operation."""
    disk_name: str
    """What the disk is called now."""
    action: DiskAction
    """What was requested."""
    status: Annotated[str, Word("requested", "completed", "failed")]
    """How far it is."""
    is_deleted: bool
    """Whether the disk is deleted."""
    created_at: datetime
    """When it was requested."""
    last_updated: datetime
    """When its status changed last."""
    completed: bool
    """Whether it is over, one way or the other."""
    error: str | None = None
    """Why it failed, or what keeps it from going on."""
    delete_date: datetime | None = None
    """When a deleted disk is gone for good."""
    disk_version: int | None = None
    """Grows with every change of the disk: while it is the same, there is nothing new to read of the disk."""
