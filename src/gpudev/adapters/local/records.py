"""The state directory of the dev servers: the files of each member, the lock of their owner, and the logs.

    <state_dir>/servers/<key>/record.json    the wish; written by the cluster alone
                              processes.json which processes run it; written by their keeper alone
                              log            what keeper and SSH server had to say
                              workspace/     /workspace of the dev server
    <state_dir>/homes/<key>/                 /home/dev of the dev server; outlives it

The key is the id's first characters, and for the other members of a gang the rank after them.

A file is replaced whole (write, fsync, rename), so a reader sees the old or the new one, never a part.

A state directory has one owner at a time, for as long as its process lives.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
from collections import deque
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import structlog

from gpudev.adapters.local.record import (
    Record,
    ServerProcesses,
    processes_from_json,
    processes_to_json,
    record_from_json,
    record_to_json,
)
from gpudev.adapters.local.trees.removal import remove_tree
from gpudev.domain.errors import Conflict, Defect, NotFound
from gpudev.domain.names import ReservationId, id8, make_printable
from gpudev.ports.cluster import LogQuery

_LEAVING = ".leaving-"
_LOG_TAIL_BYTES = 2000

_T = TypeVar("_T")

_log = structlog.get_logger(__name__)
_PAUSE_SECONDS = 0.5
_CHUNK = 64 * 1024


class ServerFiles:
    """The directory of one member."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def log_path(self) -> Path:
        return self.directory / "log"

    @property
    def workspace(self) -> Path:
        return self.directory / "workspace"

    @property
    def gang_directory(self) -> Path:
        """Of the files of a gang's member that has no sandbox to have them in."""
        return self.directory / "gang"

    @property
    def _record_path(self) -> Path:
        return self.directory / "record.json"

    @property
    def _processes_path(self) -> Path:
        return self.directory / "processes.json"

    def find_record(self) -> Record | None:
        return _find(self._record_path, record_from_json)

    def write_record(self, record: Record) -> None:
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace_file(self._record_path, record_to_json(record))

    def find_processes(self) -> ServerProcesses | None:
        return _find(self._processes_path, processes_from_json)

    def write_processes(self, processes: ServerProcesses) -> None:
        _replace_file(self._processes_path, processes_to_json(processes))

    def read_last_words(self) -> str:
        """The last line of the log, for a person who wants to know why it does not start."""
        try:
            with self.log_path.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES))
                words = log.read().decode(errors="replace").strip().rpartition("\n")[2]
                return make_printable(words, _LOG_TAIL_BYTES)
        except FileNotFoundError:
            return ""


class Records:
    """All members of one state directory."""

    def __init__(self, state_dir: Path) -> None:
        self._servers = state_dir / "servers"
        self._homes = state_dir / "homes"

    def make_directories(self) -> None:
        for directory in (self._servers, self._homes):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def files_of(self, key: str) -> ServerFiles:
        return ServerFiles(self._servers / key)

    def home_of(self, key: str) -> Path:
        return self._homes / key

    def list_records(self) -> tuple[Record, ...]:
        """Every record. A directory without one is a creation that did not get so far."""
        if not self._servers.is_dir():
            return ()
        names = sorted(entry.name for entry in self._servers.iterdir() if not entry.name.startswith("."))
        records = (self.files_of(name).find_record() for name in names)
        return tuple(record for record in records if record is not None)

    def set_aside(self, record: Record) -> None:
        """Take the record away; what else the server left, its workspace included, is left over."""
        aside = self._servers / f"{_LEAVING}{record.key}-{record.uid}"
        with contextlib.suppress(FileNotFoundError):
            self.files_of(record.key).directory.rename(aside)
        _sync_directory(self._servers)

    def list_leftovers(self) -> tuple[Path, ...]:
        """The directories of deleted servers, with their workspaces."""
        if not self._servers.is_dir():
            return ()
        return tuple(entry for entry in self._servers.iterdir() if entry.name.startswith(_LEAVING))

    def sweep(self) -> None:
        """Remove what deleted servers have left; what cannot be removed stays for the next sweep."""
        for leftover in self.list_leftovers():
            try:
                remove_tree(leftover)
            except OSError as error:
                _log.warning("leftover_not_removed", leftover=leftover.name, error=str(error))


def _find(path: Path, parse: Callable[[Any], _T]) -> _T | None:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        return parse(json.loads(text))
    except (ValueError, KeyError, TypeError) as error:
        raise Defect("record_unreadable", path=str(path), error=repr(error)) from error


def _replace_file(path: Path, content: object) -> None:
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    """A rename lasts once its directory is on the disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class StateLock:
    """Held from `take` to `release`; the kernel releases it when the process ends, however it ends.

    The descriptor is closed by exec, so no program that we start, the zygote among them, holds it on.
    """

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self._descriptor: int | None = None

    def take(self) -> None:
        self._state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._state_dir / "cluster.lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise Conflict(
                "state_dir_in_use", code="already_running", state_dir=str(self._state_dir)
            ) from None
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class LocalLogs:
    def __init__(self, state_dir: Path) -> None:
        self._records = Records(state_dir)

    async def read(self, reservation_id: ReservationId, query: LogQuery) -> AsyncIterator[bytes]:
        files = self._records.files_of(id8(reservation_id))
        record = await asyncio.to_thread(files.find_record)
        if record is None or record.spec.reservation_id != reservation_id or not files.log_path.exists():
            raise NotFound("log_without_server", id=reservation_id)
        with files.log_path.open("rb") as log:
            if query.tail is None:
                yield log.read()
            else:
                yield b"".join(deque(log, maxlen=query.tail))
            while query.follow and files.log_path.exists():
                if chunk := log.read(_CHUNK):
                    yield chunk
                else:
                    await asyncio.sleep(_PAUSE_SECONDS)
