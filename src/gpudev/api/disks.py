"""Routes of disks."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from gpudev.api import disk_views as views
from gpudev.api.context import App, Caller
from gpudev.api.encoding import json_response
from gpudev.api.problems import OF_EVERY_CALLER, problems
from gpudev.api.zones import Zone
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say
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
    SnapshotList,
)
from gpudev.wire.text import Lookup

router = APIRouter(prefix="/v1/disks", tags=["disks"], responses=OF_EVERY_CALLER)

DiskName = Annotated[Lookup, Path(description="Name of one of one's own disks.")]


@router.post("", response_model=DiskActionResponse, responses=problems(400, 409))
async def create_disk(app: App, caller: Caller, zone: Zone, body: CreateDiskRequest) -> Response:
    """Make an empty disk."""
    operation = await app.disks.create(caller, body.disk_name, body.size_gb)
    answer = fact("disk_making", name=body.disk_name)
    return json_response(views.action(operation, body.disk_name, answer, zone))


@router.get("", response_model=DiskList)
async def list_disks(
    app: App,
    caller: Caller,
    zone: Zone,
    deleted: Annotated[bool, Query(description="Those that are deleted and can be restored.")] = False,  # noqa: FBT002 - a query parameter
) -> Response:
    """One's own disks."""
    found = await app.disks.list_all(caller, is_deleted=deleted)
    return json_response(DiskList(disks=[views.disk_info(disk, zone) for disk in found], total=len(found)))


@router.get("/{name}", response_model=DiskInfo, responses=problems(404))
async def get_disk(app: App, caller: Caller, zone: Zone, name: DiskName) -> Response:
    """A disk by its name."""
    disk = await app.disks.get(caller, name)
    snapshots = await app.disks.list_snapshots(caller, name)
    return json_response(views.disk_info(disk, zone, snapshots))


@router.delete("/{name}", response_model=DiskActionResponse, responses=problems(404, 409, 410))
async def delete_disk(app: App, caller: Caller, zone: Zone, name: DiskName) -> Response:
    """Delete a disk. For 30 days it can be restored."""
    disk, operation = await app.disks.delete(caller, name)
    answer = fact("disk_deleted", name=name, until=disk.delete_date)
    return json_response(views.action(operation, name, answer, zone))


@router.post("/{name}/restore", response_model=DiskActionResponse, responses=problems(400, 404, 409, 410))
async def restore_disk(
    app: App, caller: Caller, zone: Zone, name: DiskName, body: RestoreDiskRequest | None = None
) -> Response:
    """Have a deleted disk back; of several of that name, the one that was deleted last."""
    disk, operation = await app.disks.restore(caller, name, (body.new_name if body else None) or "")
    return json_response(
        views.action(operation, disk.spec.name, fact("disk_back", name=disk.spec.name), zone)
    )


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
    return json_response(views.action(operation, body.new_name, answer, zone))


@router.post("/{name}/grow", response_model=DiskActionResponse, responses=problems(400, 404, 409, 410))
async def grow_disk(app: App, caller: Caller, zone: Zone, name: DiskName, body: GrowDiskRequest) -> Response:
    """Make a disk bigger."""
    _, operation = await app.disks.grow(caller, name, body.size_gb)
    answer = fact("disk_growing", name=name, size=body.size_gb)
    return json_response(views.action(operation, name, answer, zone))


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
    answer = SnapshotList(snapshots=[views.snapshot_info(each) for each in found], total=len(found))
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
    return json_response(views.operation_detail(operation, zone))
