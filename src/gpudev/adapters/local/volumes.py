"""This machine as the storage of disks: a volume is a directory, a snapshot is a copy of it.

Copies that share blocks take a moment, others as long as they take; they run on beside everything else and
are `MAKING` or `PENDING` until they are whole. Sizes are shown and not enforced.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeVar

import structlog

from gpudev.adapters.local.disk_folders import DiskFolders
from gpudev.adapters.local.trees.cursor import TreeError
from gpudev.adapters.local.trees.file_listing import list_tree
from gpudev.adapters.local.trees.sweeper import THREADS, Sweeper
from gpudev.domain.disk import DiskId, SnapshotId, VolumeId
from gpudev.domain.errors import GpuDevError, StorageRefused, StorageUnavailable
from gpudev.domain.volume import (
    DiskTags,
    FileListing,
    Holdings,
    ObservedSnapshot,
    ObservedVolume,
    SnapshotPhase,
    SnapshotSpec,
    VolumePhase,
    VolumeSpec,
)
from gpudev.ports.clock import Clock
from gpudev.texts.fact import fact

_log = structlog.get_logger(__name__)

_Result = TypeVar("_Result")
_Key = TypeVar("_Key")
_Thing = TypeVar("_Thing", ObservedVolume, ObservedSnapshot)

_PATIENCE_SECONDS = 1.0
"""What takes no longer is whole when the call returns."""


class LocalVolumes:
    """An async context manager: what is being copied when it ends is finished first."""

    def __init__(
        self, folders: DiskFolders, clock: Clock, list_attached: Callable[[], Mapping[VolumeId, str]]
    ) -> None:
        self._folders = folders
        self._clock = clock
        self._list_attached = list_attached
        self._trees = ThreadPoolExecutor(THREADS, thread_name_prefix="disks")
        """For what takes as long as a tree is big; other work never waits for these."""
        self._sweeper = Sweeper(folders.list_leftovers)
        self._making: dict[VolumeId, tuple[ObservedVolume, asyncio.Task[None]]] = {}
        self._copying: dict[SnapshotId, tuple[ObservedSnapshot, asyncio.Task[None]]] = {}

    async def __aenter__(self) -> Self:
        await self._in_thread(self._folders.prepare)
        self._sweeper.sweep()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        begun = [task for _, task in (*self._making.values(), *self._copying.values())]
        await asyncio.gather(*begun, return_exceptions=True)
        await self._sweeper.close()
        self._trees.shutdown(wait=False)

    async def find(self, disk_id: DiskId, volume_id: VolumeId | None) -> Holdings:
        volumes = await self.list_volumes()
        own = [each for each in volumes if _is_of(each.tags, disk_id) or each.volume_id == volume_id]
        ids = {each.volume_id for each in own}
        snapshots = await self.list_snapshots()
        return Holdings(
            tuple(own),
            tuple(each for each in snapshots if _is_of(each.tags, disk_id) or each.volume_id in ids),
        )

    async def list_volumes(self) -> tuple[ObservedVolume, ...]:
        # Those at work first: one that is finished meanwhile is then seen twice, not overlooked.
        unfinished = _list_unfinished(self._making, VolumePhase.MAKING, VolumePhase.FAILED)
        there, attached = await self._in_thread(lambda: (self._folders.list_volumes(), self._list_attached()))
        shown = {
            each.volume_id: replace(each, attached_to=attached.get(each.volume_id, "")) for each in there
        }
        return tuple({**{each.volume_id: each for each in unfinished}, **shown}.values())

    async def list_snapshots(self) -> tuple[ObservedSnapshot, ...]:
        unfinished = _list_unfinished(self._copying, SnapshotPhase.PENDING, SnapshotPhase.FAILED)
        there = await self._in_thread(self._folders.list_snapshots)
        return tuple({each.snapshot_id: each for each in (*unfinished, *there)}.values())

    async def create_volume(self, spec: VolumeSpec) -> None:
        volume = ObservedVolume(
            volume_id=VolumeId(_id_of("vol", spec.token)),
            tags=spec.tags,
            size_gb=spec.size_gb,
            created_at=self._clock.now(),
            source_snapshot_id=spec.source_snapshot_id,
        )
        if volume.volume_id not in self._making:
            work = self._on_tree(lambda: self._folders.make_volume(volume))
            self._making[volume.volume_id] = (volume, asyncio.create_task(work))
        await _wait_a_moment(self._making, volume.volume_id)

    async def create_snapshot(self, spec: SnapshotSpec) -> None:
        snapshot = ObservedSnapshot(
            snapshot_id=SnapshotId(_id_of("snap", spec.token)),
            volume_id=spec.volume_id,
            tags=spec.tags,
            phase=SnapshotPhase.COMPLETED,
            started_at=self._clock.now(),
            token=spec.token,
        )
        if snapshot.snapshot_id not in self._copying:
            work = self._on_tree(lambda: self._folders.make_snapshot(snapshot))
            self._copying[snapshot.snapshot_id] = (snapshot, asyncio.create_task(work))
        await _wait_a_moment(self._copying, snapshot.snapshot_id)

    async def grow_volume(self, volume_id: VolumeId, size_gb: int) -> None:
        await self._in_thread(lambda: self._folders.grow(volume_id, size_gb))

    async def set_tags(
        self, volume_ids: Sequence[VolumeId], snapshot_ids: Sequence[SnapshotId], tags: DiskTags
    ) -> None:
        def write() -> None:
            for volume_id in volume_ids:
                self._folders.tag_volume(volume_id, tags)
            for snapshot_id in snapshot_ids:
                self._folders.tag_snapshot(snapshot_id, tags)

        await self._in_thread(write)

    async def delete_volume(self, volume_id: VolumeId) -> None:
        if holder := self._list_attached().get(volume_id):
            raise StorageRefused("volume_attached_to_server", id=volume_id, holder=holder)
        await self._on_tree(lambda: self._folders.remove_volume(volume_id))

    async def delete_snapshot(self, snapshot_id: SnapshotId) -> None:
        await self._on_tree(lambda: self._folders.remove_snapshot(snapshot_id))

    async def list_files(self, snapshot_id: SnapshotId) -> FileListing | None:
        return await self._on_tree(lambda: list_tree(self._folders.snapshots / snapshot_id / "home"))

    async def _on_tree(self, work: Callable[[], _Result]) -> _Result:
        try:
            return await self._in_thread(work, self._trees)
        except StorageUnavailable:
            # A part of a copy or of a removal is left, if it could not be taken back at once.
            self._sweeper.sweep()
            raise

    async def _in_thread(
        self, work: Callable[[], _Result], threads: ThreadPoolExecutor | None = None
    ) -> _Result:
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, work)
        except OSError as error:
            _log.warning("disk_folder_failed", error=str(error))
            why = error.told if isinstance(error, TreeError) else error.strerror or str(error)
            raise StorageUnavailable(
                "disk_folders_unusable", state_dir=str(self._folders.state_dir), why=why
            ) from error


async def _wait_a_moment(begun: dict[_Key, tuple[Any, asyncio.Task[None]]], key: _Key) -> None:
    """Success needs no memory: it is there to be seen. A failure is kept until it has been told."""
    _, task = begun[key]
    await asyncio.wait({task}, timeout=_PATIENCE_SECONDS)


def _list_unfinished(
    begun: dict[Any, tuple[_Thing, asyncio.Task[None]]], at_work: Any, failed: Any
) -> tuple[_Thing, ...]:
    """Those that are still being made, and, once, those that could not be."""
    shown: list[_Thing] = []
    for key, (thing, task) in list(begun.items()):
        if not task.done():
            shown.append(replace(thing, phase=at_work))
            continue
        del begun[key]
        if error := task.exception():
            shown.append(_failed(thing, failed, error))
    return tuple(shown)


def _failed(thing: _Thing, phase: Any, error: BaseException) -> _Thing:
    if isinstance(thing, ObservedSnapshot):
        told = error.fact if isinstance(error, GpuDevError) else fact("words", words=str(error))
        return replace(thing, phase=phase, detail=told)
    return replace(thing, phase=phase)


def _is_of(tags: DiskTags | None, disk_id: DiskId) -> bool:
    return tags is not None and tags.disk_id == disk_id


def _id_of(kind: str, token: str) -> str:
    """The same token gives the same name, so that what was made before a crash is found again."""
    return f"{kind}-{uuid.uuid5(uuid.NAMESPACE_URL, f'gpu-dev/{kind}/{token}').hex[:17]}"
