"""What stands in for a cluster that another process owns, and for storage that is not configured.

Every call fails and says so: what needs the cluster is left to the process that owns it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import NoReturn

from gpudev.domain.disk import DiskId, SnapshotId, VolumeId
from gpudev.domain.errors import ClusterUnavailable, StorageRefused
from gpudev.domain.idle import Usage
from gpudev.domain.job import Job
from gpudev.domain.names import ReservationId
from gpudev.domain.notices import Notice
from gpudev.domain.plans.orphans import Leftover
from gpudev.domain.server import ObservedServer, ServerSpec
from gpudev.domain.volume import (
    DiskTags,
    FileListing,
    Holdings,
    ObservedSnapshot,
    ObservedVolume,
    SnapshotSpec,
    VolumeSpec,
)
from gpudev.ports.cluster import ClusterChange, Snapshot


class AbsentCluster:
    def snapshot(self) -> Snapshot:
        _refuse()

    async def find_server(
        self,
        reservation_id: ReservationId,
        node_count: int = 1,  # noqa: ARG002 - they are all known here
    ) -> ObservedServer | None:
        _refuse(reservation_id)

    async def create_server(self, spec: ServerSpec) -> None:
        _refuse(spec.reservation_id)

    async def delete_server(self, reservation_id: ReservationId, uid: str) -> None:
        _refuse(f"{reservation_id} {uid}")

    async def tell(self, reservation_id: ReservationId, uid: str, notices: tuple[Notice, ...]) -> None:
        _refuse(f"{reservation_id} {uid} {len(notices)}")

    async def list_home(self, reservation_id: ReservationId, uid: str) -> FileListing | None:
        _refuse(f"{reservation_id} {uid}")

    async def find_job(self, reservation_id: ReservationId, uid: str) -> Job | None:
        _refuse(f"{reservation_id} {uid}")

    async def measure(self, reservation_id: ReservationId, uid: str, now: datetime) -> Usage | None:
        _refuse(f"{reservation_id} {uid} {now}")

    async def discard_port_slot(self, port_slot: str) -> None:
        _refuse(port_slot)

    def list_leftovers(self) -> tuple[Leftover, ...]:
        _refuse()

    async def remove_leftover(self, leftover: Leftover) -> None:
        _refuse(leftover.name)

    async def changes(self) -> AsyncIterator[ClusterChange]:
        """None ever."""
        none: tuple[ClusterChange, ...] = ()
        for change in none:
            yield change


def _refuse(what: str = "") -> NoReturn:
    raise ClusterUnavailable("cluster_of_another_process", what=what)


class AbsentVolumes:
    async def find(self, disk_id: DiskId, volume_id: VolumeId | None) -> Holdings:
        _refuse_storage(disk_id, volume_id)

    async def list_volumes(self) -> tuple[ObservedVolume, ...]:
        _refuse_storage()

    async def list_snapshots(self) -> tuple[ObservedSnapshot, ...]:
        _refuse_storage()

    async def create_volume(self, spec: VolumeSpec) -> None:
        _refuse_storage(spec)

    async def grow_volume(self, volume_id: VolumeId, size_gb: int) -> None:
        _refuse_storage(volume_id, size_gb)

    async def create_snapshot(self, spec: SnapshotSpec) -> None:
        _refuse_storage(spec)

    async def set_tags(
        self, volume_ids: Sequence[VolumeId], snapshot_ids: Sequence[SnapshotId], tags: DiskTags
    ) -> None:
        _refuse_storage(volume_ids, snapshot_ids, tags)

    async def delete_volume(self, volume_id: VolumeId) -> None:
        _refuse_storage(volume_id)

    async def delete_snapshot(self, snapshot_id: SnapshotId) -> None:
        _refuse_storage(snapshot_id)

    async def list_files(self, snapshot_id: SnapshotId) -> FileListing | None:
        _refuse_storage(snapshot_id)


def _refuse_storage(*_asked: object) -> NoReturn:
    raise StorageRefused("no_storage")
