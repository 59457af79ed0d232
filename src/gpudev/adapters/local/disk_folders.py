"""The directories of volumes and snapshots, and what is written down about each.

    <state_dir>/disks/volumes/<volume_id>/volume.json      whose it is, and how big it was asked for
                                          home/            /home/dev of whoever has it; made at the first use
    <state_dir>/disks/snapshots/<snapshot_id>/snapshot.json
                                              home/        the copy

A directory appears whole, by a rename, and goes the same way. What is only partly made or removed has a name
of its own, and `sweep` removes it.

The records of the dev servers say which volume each of them has; a server without one has a home of its own.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from gpudev.adapters.local.record import Record
from gpudev.adapters.local.records import Records
from gpudev.adapters.local.trees.copy import copy_tree, sync_tree
from gpudev.adapters.local.trees.cursor import TreeError
from gpudev.adapters.local.trees.removal import remove_tree
from gpudev.domain.disk import DiskId, SnapshotId, VolumeId
from gpudev.domain.volume import DiskTags, ObservedSnapshot, ObservedVolume, SnapshotPhase
from gpudev.texts.fact import fact

_MAKING = ".making-"
_LEAVING = ".leaving-"
_T = TypeVar("_T")


def home_of_volume(state_dir: Path, volume_id: VolumeId) -> Path:
    return state_dir / "disks" / "volumes" / volume_id / "home"


@dataclass(frozen=True, slots=True)
class DiskFolders:
    state_dir: Path
    durable: bool = True
    """Whether to wait until everything is on the disk; tests that lose no power need not."""
    in_work: set[str] = field(default_factory=set)
    """Names of directories that a thread of this process is making or removing."""

    @property
    def volumes(self) -> Path:
        return self.state_dir / "disks" / "volumes"

    @property
    def snapshots(self) -> Path:
        return self.state_dir / "disks" / "snapshots"

    def prepare(self) -> None:
        for folder in (self.volumes, self.snapshots):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def list_leftovers(self) -> tuple[Path, ...]:
        """What was left by a copy or a removal that failed or was killed; not what is being worked on."""
        return tuple(
            entry
            for folder in (self.volumes, self.snapshots)
            for entry in folder.iterdir()
            if entry.name.startswith((_MAKING, _LEAVING)) and entry.name not in self.in_work
        )

    def list_volumes(self) -> tuple[ObservedVolume, ...]:
        return tuple(_read_all(self.volumes, "volume.json", volume_from))

    def list_snapshots(self) -> tuple[ObservedSnapshot, ...]:
        return tuple(_read_all(self.snapshots, "snapshot.json", snapshot_from))

    def make_volume(self, volume: ObservedVolume) -> None:
        source = volume.source_snapshot_id
        content = self.snapshots / source / "home" if source else None
        if source and not (self.snapshots / source).is_dir():
            raise TreeError(errno.ENOENT, fact("snapshot_not_there", id=source))
        self._make(self.volumes / volume.volume_id, "volume.json", volume, content)

    def make_snapshot(self, snapshot: ObservedSnapshot) -> None:
        volume = self.volumes / snapshot.volume_id
        if not volume.is_dir():
            raise TreeError(errno.ENOENT, fact("volume_not_there", id=snapshot.volume_id))
        self._make(self.snapshots / snapshot.snapshot_id, "snapshot.json", snapshot, volume / "home")

    def tag_volume(self, volume_id: VolumeId, tags: DiskTags) -> None:
        self._change(self.volumes / volume_id / "volume.json", volume_from, tags=tags)

    def tag_snapshot(self, snapshot_id: SnapshotId, tags: DiskTags) -> None:
        self._change(self.snapshots / snapshot_id / "snapshot.json", snapshot_from, tags=tags)

    def grow(self, volume_id: VolumeId, size_gb: int) -> None:
        self._change(self.volumes / volume_id / "volume.json", volume_from, size_gb=size_gb)

    def remove_volume(self, volume_id: VolumeId) -> None:
        self._remove(self.volumes / volume_id)

    def remove_snapshot(self, snapshot_id: SnapshotId) -> None:
        self._remove(self.snapshots / snapshot_id)

    def _make(self, target: Path, note: str, about: Any, content: Path | None) -> None:
        if target.is_dir():
            return
        making = target.with_name(f"{_MAKING}{target.name}-{uuid4().hex}")
        with self._working_on(making):
            making.mkdir(mode=0o700)
            try:
                if content is not None and content.is_dir():
                    copy_tree(content, making / "home")
                (making / note).write_text(json.dumps(_to_json(about)), encoding="utf-8")
                if self.durable:
                    sync_tree(making)
                making.rename(target)
            finally:
                if making.exists():
                    remove_tree(making)
        self._sync(target.parent)

    def _remove(self, folder: Path) -> None:
        leaving = folder.with_name(f"{_LEAVING}{folder.name}-{uuid4().hex}")
        with self._working_on(leaving):
            try:
                folder.rename(leaving)
            except FileNotFoundError:
                return
            remove_tree(leaving)

    @contextlib.contextmanager
    def _working_on(self, directory: Path) -> Iterator[None]:
        self.in_work.add(directory.name)
        try:
            yield
        finally:
            self.in_work.discard(directory.name)

    def _change(self, path: Path, read: Callable[[Any], Any], **changes: object) -> None:
        """Replace what is written down about one that is there."""
        changed = replace(read(json.loads(path.read_text(encoding="utf-8"))), **changes)
        fresh = path.with_name(f".{path.name}.{uuid4().hex}")
        with fresh.open("w", encoding="utf-8") as file:
            json.dump(_to_json(changed), file)
            file.flush()
            if self.durable:
                os.fsync(file.fileno())
        fresh.replace(path)
        self._sync(path.parent)

    def _sync(self, directory: Path) -> None:
        if not self.durable:
            return
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _read_all(folder: Path, note: str, read: Callable[[Any], _T]) -> Iterator[_T]:
    if not folder.is_dir():
        return
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("."):
            continue
        try:
            text = (entry / note).read_text(encoding="utf-8")
        except FileNotFoundError:
            # Removed since it was listed.
            continue
        yield read(json.loads(text))


def _to_json(about: Any) -> dict[str, Any]:
    return {name: _time_to_json(value) for name, value in asdict(about).items()}


def _time_to_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _time_to_json(each) for name, each in value.items()}
    return value.isoformat() if isinstance(value, datetime) else value


def volume_from(value: dict[str, Any]) -> ObservedVolume:
    return ObservedVolume(
        volume_id=VolumeId(value["volume_id"]),
        tags=_tags_from(value["tags"]),
        size_gb=value["size_gb"],
        created_at=datetime.fromisoformat(value["created_at"]),
        source_snapshot_id=SnapshotId(value["source_snapshot_id"]) if value["source_snapshot_id"] else None,
    )


def snapshot_from(value: dict[str, Any]) -> ObservedSnapshot:
    return ObservedSnapshot(
        snapshot_id=SnapshotId(value["snapshot_id"]),
        volume_id=VolumeId(value["volume_id"]),
        tags=_tags_from(value["tags"]),
        phase=SnapshotPhase.COMPLETED,
        started_at=datetime.fromisoformat(value["started_at"]),
        size_gb=value["size_gb"],
        token=value["token"],
    )


def _tags_from(value: dict[str, Any] | None) -> DiskTags | None:
    if value is None:
        return None
    date = value["delete_date"]
    return DiskTags(
        username=value["username"],
        disk_name=value["disk_name"],
        disk_id=DiskId(value["disk_id"]) if value["disk_id"] else None,
        delete_date=datetime.fromisoformat(date) if date else None,
    )


def find_home(state_dir: Path, record: Record) -> Path:
    disk = record.home
    return home_of_volume(state_dir, disk.volume_id) if disk else Records(state_dir).home_of(record.key)


def list_attached(state_dir: Path) -> Mapping[VolumeId, str]:
    """A server has its volume from the moment it is written down until its record is gone."""
    return {
        record.home.volume_id: record.name
        for record in Records(state_dir).list_records()
        if record.home is not None
    }
