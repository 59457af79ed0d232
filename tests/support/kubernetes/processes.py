"""The processes of a cluster: each is started detached, recorded in a file, and stopped by that record.

The record outlives whoever wrote it, so that another process can stop what a crashed one has started. It
names the process by pid, start time and boot: somebody else's process is never meant.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from gpudev.adapters.local.processes.identity import (
    ProcessIdentity,
    find_parent,
    holding,
    identify,
    list_pids,
)

MARK = "GPU_DEV_TEST_CLUSTER"
"""In the environment of every process, the folder of its record: it finds one that was never recorded."""
_STOP_SECONDS = 10.0
_LOG_LINES = 15


class ClusterFailed(RuntimeError):
    """The test cluster could not do what it was asked; the message says which part and why."""


class Surroundings(Protocol):
    """Where a process runs: on this machine as it is, or inside a node."""

    def wrap(self, command: Sequence[str]) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class Process:
    """One long-running program of a cluster, by name; it may run or not."""

    name: str
    folder: Path
    """Of records and logs, one of each a process."""

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    @property
    def _record(self) -> Path:
        return self.folder / f"{self.name}.json"

    def start(
        self,
        command: Sequence[str],
        *,
        inside: Surroundings | None = None,
        environment: Mapping[str, str] | None = None,
        wrapped: bool = False,
    ) -> None:
        """Start it detached. A wrapped command is the only child of the one that is called."""
        self.folder.mkdir(parents=True, exist_ok=True)
        spawned = _spawn(inside.wrap(command) if inside else command, self.log, environment or {})
        pid = _wait_for_child(spawned, self) if inside or wrapped else spawned
        self._remember(pid, spawned)

    def find(self) -> ProcessIdentity | None:
        """The running process, if it runs."""
        recorded = self._recorded()
        return recorded if recorded and identify(recorded.pid) == recorded else None

    def get_pid(self) -> int:
        found = self.find()
        if found is None:
            raise ClusterFailed(f"{self.name} does not run.\n{self.tail()}")
        return found.pid

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End it, by force if it does not listen; nothing happens if it does not run."""
        recorded = self._recorded()
        if recorded is None:
            return
        with holding(recorded) as process:
            if process is not None:
                process.send_signal(number)
                if not process.wait_blocking(_STOP_SECONDS):
                    process.send_signal(signal.SIGKILL)
                    process.wait_blocking(_STOP_SECONDS)
        self._reap()
        self._record.unlink(missing_ok=True)

    def wait_until(self, is_ready: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
        """Ask until it is ready; a process that has ended will never be."""
        deadline = time.monotonic() + seconds
        while not is_ready():
            if self.find() is None:
                raise ClusterFailed(f"{self.name} ended instead of being {what}.\n{self.tail()}")
            if time.monotonic() > deadline:
                raise ClusterFailed(f"{self.name} was not {what} in {seconds:.0f} s.\n{self.tail()}")
            time.sleep(0.05)

    def tail(self) -> str:
        if not self.log.exists():
            return f"{self.log}: never written"
        lines = self.log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
        return "\n".join([f"{self.log}:", *lines])

    def _remember(self, pid: int, spawned: int) -> None:
        identity = identify(pid)
        if identity is None:
            raise ClusterFailed(f"{self.name} ended at once.\n{self.tail()}")
        unfinished = self._record.with_suffix(".new")
        unfinished.write_text(json.dumps({"process": asdict(identity), "spawned": spawned}))
        unfinished.rename(self._record)

    def _recorded(self) -> ProcessIdentity | None:
        if not self._record.exists():
            return None
        return ProcessIdentity(**json.loads(self._record.read_text())["process"])

    def _reap(self) -> None:
        """Collect it if it is our own child; it may be that of an earlier `up`."""
        spawned = json.loads(self._record.read_text())["spawned"]
        with contextlib.suppress(ChildProcessError):
            os.waitpid(spawned, 0)


def list_processes(folder: Path) -> tuple[Process, ...]:
    """Every process with a record, those started last first."""
    records = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    return tuple(Process(record.stem, folder) for record in records)


def list_marked(folder: Path) -> tuple[ProcessIdentity, ...]:
    """Every live process that was started for this folder, recorded or not."""
    mark = f"{MARK}={folder}".encode()
    found = (identify(pid) for pid in list_pids() if mark in _read_environment(pid))
    return tuple(identity for identity in found if identity is not None)


def kill(identity: ProcessIdentity) -> None:
    with holding(identity) as process:
        if process is not None:
            process.send_signal(signal.SIGKILL)
            process.wait_blocking(_STOP_SECONDS)


def _read_environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []


def _spawn(command: Sequence[str], log: Path, environment: Mapping[str, str]) -> int:
    """Not by `subprocess`: the process may outlive this one, which `Popen` objects complain about."""
    output = (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    return os.posix_spawnp(
        command[0],
        list(command),
        {**os.environ, **environment, MARK: str(log.parent)},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            output,
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigdef=list(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}),
    )


def _wait_for_child(parent: int, process: Process, seconds: float = 10.0) -> int:
    deadline = time.monotonic() + seconds
    while identify(parent) is not None and time.monotonic() < deadline:
        for pid in list_pids():
            if find_parent(pid) == parent:
                return pid
        time.sleep(0.005)
    raise ClusterFailed(f"{process.name} did not start.\n{process.tail()}")
