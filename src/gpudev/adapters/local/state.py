"""The state folder of the one-machine mode: where things are, and which control plane is running.

- `login`: a secret that proves a login; whoever can read it is the owner
- `api.sock`: the unix socket on which the API answers the owner's own commands
- `cluster-id`: which machine's state this is; a database belongs to one
- `control-plane`: the process and the address of the running `gpu-dev up`, if any
- `postgres/`: the database
- `servers/`, `homes/`: the dev servers and their homes
- `logs/`: of the control plane's processes

The processes of the control plane share their metrics in memory, not on the disk: the metrics library maps
its files. On a full disk a write to such a file kills the process, and the homes of the dev servers, which
users fill, lie on the same disk as the state folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import shutil
import socket
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from gpudev.adapters.local.processes.identity import ProcessIdentity, identify
from gpudev.domain.errors import Conflict, Defect, Invalid

_SECRET_BYTES = 32
_BACKLOG = 128
_MEMORY = Path("/dev/shm")  # noqa: S108 - the folder made there is private, and checked to be ours


@dataclass(frozen=True, slots=True)
class ControlPlaneNote:
    """Which process runs the control plane, and where it answers."""

    process: ProcessIdentity
    api_url: str


@dataclass(frozen=True, slots=True)
class StateFolder:
    path: Path

    @property
    def postgres(self) -> Path:
        return self.path / "postgres"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def login_file(self) -> Path:
        return self.path / "login"

    @property
    def api_socket(self) -> Path:
        return self.path / "api.sock"

    @property
    def _cluster_id(self) -> Path:
        return self.path / "cluster-id"

    @property
    def _control_plane(self) -> Path:
        return self.path / "control-plane"

    def prepare(self) -> None:
        """Make what is missing, for the owner alone."""
        try:
            for folder in (self.path, self.logs):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise Invalid(
                "state_dir_unusable", code="bad_state_dir", path=str(self.path), words=error.strerror
            ) from error
        self.path.chmod(0o700)
        if not self.login_file.exists():
            _write_private(self.login_file, secrets.token_urlsafe(_SECRET_BYTES))
        if not self._cluster_id.exists():
            _write_private(self._cluster_id, str(uuid.uuid4()))

    def read_cluster_id(self) -> str:
        return self._cluster_id.read_text(encoding="utf-8").strip()

    def read_login_secret(self) -> bytes:
        return self.login_file.read_bytes().strip()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """The right to run the control plane here, held for this long, or until the process ends."""
        descriptor = self._lock()
        try:
            yield
        finally:
            os.close(descriptor)

    def _lock(self) -> int:
        descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            running = self.find_running()
            api_url = running.api_url if running else ""
            raise Conflict(
                "control_plane_runs", code="already_running", api_url=api_url, path=str(self.path)
            ) from error
        return descriptor

    @contextmanager
    def listening(self) -> Iterator[socket.socket]:
        """The unix socket on which the API serves the owner's own commands. Only while `locked`."""
        self.api_socket.unlink(missing_ok=True)
        folder = os.open(self.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
                # Through the open folder: the address of a socket holds 107 bytes, and paths are longer.
                listener.bind(f"/proc/self/fd/{folder}/{self.api_socket.name}")
                self.api_socket.chmod(0o600)
                listener.listen(_BACKLOG)
                yield listener
        finally:
            os.close(folder)
            self.api_socket.unlink(missing_ok=True)

    def note_running(self, api_url: str) -> None:
        process = identify(os.getpid())
        if process is None:
            raise Defect("own_process_not_found")
        _write_private(self._control_plane, json.dumps(asdict(ControlPlaneNote(process, api_url))))

    def forget_running(self) -> None:
        self._control_plane.unlink(missing_ok=True)

    def find_running(self) -> ControlPlaneNote | None:
        note = self.find_note()
        return note if note and identify(note.process.pid) == note.process else None

    def find_note(self) -> ControlPlaneNote | None:
        """What was noted last, whether that process still runs or was killed."""
        try:
            content = json.loads(self._control_plane.read_text(encoding="utf-8"))
            return ControlPlaneNote(ProcessIdentity(**content["process"]), content["api_url"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            # Nothing of ours: it is written whole or not at all.
            return None


def _write_private(path: Path, text: str) -> None:
    """All or nothing, and never readable by others, not for a moment."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def make_metrics_folder(state_dir: Path) -> Path:
    """An empty folder that only we can enter."""
    remove_metrics_folder(state_dir)
    folder = _choose_folder(state_dir)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def remove_metrics_folder(state_dir: Path) -> None:
    shutil.rmtree(_choose_folder(state_dir), ignore_errors=True)


def _choose_folder(state_dir: Path) -> Path:
    digest = hashlib.sha256(os.fsencode(state_dir)).hexdigest()[:16]
    folder = _MEMORY / f"gpu-dev-metrics-{os.getuid()}-{digest}"
    is_usable = os.access(_MEMORY, os.W_OK) and _is_free_or_ours(folder)
    return folder if is_usable else state_dir / "metrics"


def _is_free_or_ours(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return True
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
