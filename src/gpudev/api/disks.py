"""Routes of disks, and disks as values of the wire."""

from __future__ import annotations

from datetime import tzinfo
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from gpudev.api.context import App, Caller
from gpudev.api.encoding import json_response
from gpudev.api.errors import OF_EVERY_CALLER, problems
from gpudev.api.times import Zone
from gpudev.api.views import say_if
from gpudev.app.disks import StoredDiskOperation, StoredSnapshot
from gpudev.domain.disk import Disk, DiskOperation
from gpudev.texts.fact import Fact, fact
from gpudev.texts.sentences import say
from gpudev.texts.vocabulary import OperationStatus
from gpudev.wire.disks import (
    CloneDiskRequest,
    CreateDiskRequest,
    DiskActionResponse,
    DiskContent,
    DiskInfo,
    DiskList,
    DiskOperationDetail,
    GrowDiskRequest,
    RenamedDisk,
    RenameDiskRequest,
    RestoreDiskRequest,
    SnapshotInfo,
    SnapshotList,
)
from gpudev.wire.jobs import OperationDetail
from gpudev.wire.text import Lookup

_GB = 1_000_000_000
_MB = 1_000_000

_STATUS_OF_DISKS = {OperationStatus.DONE: "completed"}
"""What clients of version 0.3 wait for on the routes of disks."""
router = APIRouter(prefix="/v1/disks", tags=["disks"], responses=OF_EVERY_CALLER)
DiskName = Annotated[Lookup, Path(description="Name of one of one's own disks.")]


@router.post("", response_model=DiskActionResponse, responses=problems(400, 409))
async def create_disk(app: App, caller: Caller, zone: Zone, body: CreateDiskRequest) -> Response:
    """Make an empty disk."""
    operation = await app.disks.create(caller, body.disk_name, body.size_gb)
    answer = fact("disk_making", name=body.disk_name)
    return json_response(disk_action(operation, body.disk_name, answer, zone))


@router.get("", response_model=DiskList)
async def list_disks(
    app: App,
    caller: Caller,
    zone: Zone,
    deleted: Annotated[bool, Query(description="Those that are deleted and can be restored.")] = False,  # noqa: FBT002 - a query parameter
) -> Response:
    """One's own disks."""
    found = await app.disks.list_all(caller, is_deleted=deleted)
    return json_response(DiskList(disks=[disk_info(disk, zone) for disk in found], total=len(found)))


@router.get("/{name}", response_model=DiskInfo, responses=problems(404))
async def get_disk(app: App, caller: Caller, zone: Zone, name: DiskName) -> Response:
    """A disk by its name."""
    disk = await app.disks.get(caller, name)
    snapshots = await app.disks.list_snapshots(caller, name)
    return json_response(disk_info(disk, zone, snapshots))


@router.delete("/{name}", response_model=DiskActionResponse, responses=problems(404, 409, 410))
async def delete_disk(app: App, caller: Caller, zone: Zone, name: DiskName) -> Response:
    """Delete a disk. For 30 days it can be restored."""
    disk, operation = await app.disks.delete(caller, name)
    answer = fact("disk_deleted", name=name, until=disk.delete_date)
    return json_response(disk_action(operation, name, answer, zone))


@router.post("/{name}/restore", response_model=DiskActionResponse, responses=problems(400, 404, 409, 410))
async def restore_disk(
    app: App, caller: Caller, zone: Zone, name: DiskName, body: RestoreDiskRequest | None = None
) -> Response:
    """Have a deleted disk back; of several of that name, the one that was deleted last."""
    disk, operation = await app.disks.restore(caller, name, (body.new_name if body else None) or "")
    return json_response(disk_action(operation, disk.spec.name, fact("disk_back", name=disk.spec.name), zone))


@router.post("/{name}/rename", response_model=RenamedDisk, responses=problems(400, 404, 409, 410))
async def rename_disk(
    app: App, caller: Caller, zone: Zone, name: DiskName, body: RenameDiskRequest
) -> Response:
    """Call a disk something else."""
    renamed = await app.disks.rename(caller, name, body.new_name)
    answer = RenamedDisk(
        message=say(fact("disk_renamed", name=name, new_name=renamed.disk.spec.name), zone),
        old_name=name,
        new_name=renamed.disk.spec.name,
        snapshots_updated=renamed.snapshots_updated,
        errors=None if renamed.is_done else [say(fact("disk_tags_pending"), zone)],
    )
    return json_response(answer)


@router.post("/{name}/clone", response_model=DiskActionResponse, responses=problems(400, 404, 409, 410))
async def clone_disk(
    app: App, caller: Caller, zone: Zone, name: DiskName, body: CloneDiskRequest
) -> Response:
    """Copy a disk; one that is in use is copied as it was when it was last given back."""
    operation, answer = await app.disks.clone(caller, name, body.new_name)
    return json_response(disk_action(operation, body.new_name, answer, zone))


@router.post("/{name}/grow", response_model=DiskActionResponse, responses=problems(400, 404, 409, 410))
async def grow_disk(app: App, caller: Caller, zone: Zone, name: DiskName, body: GrowDiskRequest) -> Response:
    """Make a disk bigger."""
    _, operation = await app.disks.grow(caller, name, body.size_gb)
    answer = fact("disk_growing", name=name, size=body.size_gb)
    return json_response(disk_action(operation, name, answer, zone))


@router.get("/{name}/content", response_model=DiskContent, responses=problems(404))
async def read_content(app: App, caller: Caller, zone: Zone, name: DiskName) -> Response:
    """The files on the newest snapshot of a disk."""
    content = await app.disks.read_content(caller, name)
    answer = DiskContent(
        disk_name=name,
        content=content.text,
        message=None if content.text else say(content.remark, zone),
        snapshot_date=content.taken.started_at if content.taken else None,
    )
    return json_response(answer)


@router.get("/{name}/snapshots", response_model=SnapshotList, responses=problems(404))
async def list_snapshots(app: App, caller: Caller, name: DiskName) -> Response:
    """The snapshots of a disk."""
    found = await app.disks.list_snapshots(caller, name)
    answer = SnapshotList(snapshots=[snapshot_info(each) for each in found], total=len(found))
    return json_response(answer)


@router.get("/{name}/operations/{operation_id}", response_model=DiskOperationDetail, responses=problems(404))
async def get_operation(
    app: App,
    caller: Caller,
    zone: Zone,
    name: DiskName,  # noqa: ARG001 - part of the path, and free to have changed
    operation_id: Annotated[Lookup, Path(description="As the request of the action was answered.")],
) -> Response:
    """What became of a requested action. The disk may have another name by now; the operation tells it."""
    operation = await app.disks.get_operation(caller, operation_id)
    return json_response(disk_operation_detail(operation, zone))


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


def disk_action(operation: DiskOperation, disk_name: str, answer: Fact, zone: tzinfo) -> DiskActionResponse:
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


def disk_operation_detail(operation: StoredDiskOperation, zone: tzinfo) -> DiskOperationDetail:
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
