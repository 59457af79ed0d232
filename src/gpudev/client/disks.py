"""What owners ask of their disks, one method each."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote

from gpudev.client.errors import ClientError, TimedOut
from gpudev.client.interruption import pause
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
    SnapshotList,
)

if TYPE_CHECKING:
    from gpudev.client.session import Client

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0


class Disks:
    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self, *, deleted: bool = False) -> DiskList:
        return self._client.call(DiskList, "GET", "/v1/disks?deleted=true" if deleted else "/v1/disks")

    def get(self, name: str) -> DiskInfo:
        return self._client.call(DiskInfo, "GET", _path(name))

    def create(self, name: str, size_gb: int | None = None) -> DiskActionResponse:
        body = CreateDiskRequest(disk_name=name, size_gb=size_gb)
        return self._client.send(DiskActionResponse, "POST", "/v1/disks", body)

    def rename(self, name: str, new_name: str) -> RenamedDisk:
        body = RenameDiskRequest(new_name=new_name)
        return self._client.send(RenamedDisk, "POST", f"{_path(name)}/rename", body)

    def clone(self, name: str, new_name: str) -> DiskActionResponse:
        body = CloneDiskRequest(new_name=new_name)
        return self._client.send(DiskActionResponse, "POST", f"{_path(name)}/clone", body)

    def grow(self, name: str, size_gb: int) -> DiskActionResponse:
        body = GrowDiskRequest(size_gb=size_gb)
        return self._client.send(DiskActionResponse, "POST", f"{_path(name)}/grow", body)

    def delete(self, name: str) -> DiskActionResponse:
        """It can be restored for 30 days."""
        return self._client.send(DiskActionResponse, "DELETE", _path(name))

    def restore(self, name: str, new_name: str | None = None) -> DiskActionResponse:
        body = RestoreDiskRequest(new_name=new_name)
        return self._client.send(DiskActionResponse, "POST", f"{_path(name)}/restore", body)

    def read_content(self, name: str) -> DiskContent:
        """The files on its newest snapshot."""
        return self._client.call(DiskContent, "GET", f"{_path(name)}/content")

    def list_snapshots(self, name: str) -> SnapshotList:
        return self._client.call(SnapshotList, "GET", f"{_path(name)}/snapshots")

    def get_operation(self, name: str, operation_id: str) -> DiskOperationDetail:
        path = f"{_path(name)}/operations/{quote(operation_id, safe='')}"
        return self._client.call(DiskOperationDetail, "GET", path)

    def wait_for(
        self,
        asked: DiskActionResponse,
        *,
        timeout: float | None = None,
        tell: Callable[[DiskInfo], None] | None = None,
    ) -> DiskInfo:
        """Wait until a requested action is over; `tell` hears how the disk stands meanwhile.

        The disk is read when it has changed. Older servers do not say whether it has.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        length = _FIRST_PAUSE
        told: int | None = None
        while not (operation := self.get_operation(asked.disk_name, asked.operation_id)).completed:
            if tell is not None and (operation.disk_version is None or operation.disk_version != told):
                tell(self.get(operation.disk_name))
                told = operation.disk_version
            if deadline is not None and time.monotonic() >= deadline:
                raise TimedOut(f'Disk "{operation.disk_name}" is not there yet.')
            pause(length)
            length = min(_LONGEST_PAUSE, length * 1.5)
        if operation.status == OperationStatus.FAILED:
            raise ClientError(operation.error or f'The {operation.action} of "{operation.disk_name}" failed.')
        return self.get(operation.disk_name)


def _path(name: str) -> str:
    return f"/v1/disks/{quote(name, safe='')}"
