"""What one dev server may use of this machine: limits by rlimits, and by a cgroup v2 of its own.

Rlimits work everywhere. Memory, CPU and the number of processes of a whole server are limited by a cgroup,
where a cgroup has been delegated to gpu-dev.

A cgroup is ours to divide if the settings name it, or if our own is delegated: it belongs to our user, or
systemd has marked it (`Delegate=yes`). Being root is not enough, since root may write to everybody's.

    <delegated>/gpu-dev-control/        our own processes, if they were in the delegated cgroup itself
    <delegated>/gpu-dev-server-<key>/   one dev server with its keeper

The kernel has no processes in a cgroup that is divided, hence the first of these.
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpudev.domain.catalogue import Share
from gpudev.texts.fact import Fact, fact
from gpudev.texts.sentences import say

_GIB = 1024**3
_FEWEST_PROCESSES = 4096
_MOST_PROCESSES = 32768
_PROCESSES_PER_CPU = 1024
"""Threads count as processes, and libraries start several for each core."""
_OPEN_FILES = 65536

ALL_CONTROLLERS = ("memory", "cpu", "pids")
_CONTROL = "gpu-dev-control"
_SERVER = "gpu-dev-server-"
_PERIOD_MICROSECONDS = 100_000
_TRIES_TO_EMPTY = 5
"""A process that is about to be moved may start another."""
_DELEGATION_MARKS = ("user.delegate", "trusted.delegate")


@dataclass(frozen=True, slots=True)
class Limits:
    memory_bytes: int
    cpus: float
    processes: int
    open_files: int = _OPEN_FILES


def limits_of(share: Share) -> Limits:
    processes = int(share.cpu_limit * _PROCESSES_PER_CPU)
    return Limits(
        memory_bytes=int(share.memory_limit_gib * _GIB),
        cpus=float(share.cpu_limit),
        processes=max(_FEWEST_PROCESSES, min(processes, _MOST_PROCESSES)),
    )


def choose_rlimits(
    limits: Limits, hard: Mapping[int, int], *, has_own_user: bool
) -> Mapping[int, tuple[int, int]]:
    """Soft and hard limit by resource, never above the hard limits that are there already.

    Processes are counted by user, so they are limited only where the server has a user of its own.
    """
    wanted = {resource.RLIMIT_CORE: 0, resource.RLIMIT_NOFILE: limits.open_files}
    if has_own_user:
        wanted[resource.RLIMIT_NPROC] = limits.processes
    lowest = {kind: _lower(value, hard[kind]) for kind, value in wanted.items()}
    return {kind: (value, value) for kind, value in lowest.items()}


def _lower(wanted: int, hard: int) -> int:
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def apply_rlimits(limits: Limits, *, has_own_user: bool) -> None:
    """To this process and all that it starts from now on."""
    kinds = (resource.RLIMIT_CORE, resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC)
    hard = {kind: resource.getrlimit(kind)[1] for kind in kinds}
    for kind, values in choose_rlimits(limits, hard, has_own_user=has_own_user).items():
        resource.setrlimit(kind, values)


def describe_limits(limits: Limits, enforced: Collection[str], *, has_own_user: bool) -> Fact:
    """For the greeting: what is limited, and plainly what is not."""
    return fact(
        "server_limits",
        memory_gib=limits.memory_bytes / _GIB,
        cpus=limits.cpus,
        processes=limits.processes,
        open_files=limits.open_files,
        enforced=sorted({*enforced, *(["pids"] if has_own_user else [])}),
    )


@dataclass(frozen=True, slots=True)
class Cgroups:
    """The delegated cgroup, divided, and the controllers that it may limit with."""

    root: Path
    controllers: tuple[str, ...]

    def enter(self, key: str, limits: Limits) -> None:
        """Move this process, and all that it starts from now on, into the cgroup of a dev server."""
        folder = self.root / f"{_SERVER}{key}"
        folder.mkdir(exist_ok=True)
        for name, value in limit_files(limits, self.controllers).items():
            (folder / name).write_text(value)
        (folder / "cgroup.procs").write_text(str(os.getpid()))

    def sweep(self) -> None:
        """Remove the cgroups of dev servers that have ended: the kernel keeps those with processes."""
        for folder in self.root.glob(f"{_SERVER}*"):
            with contextlib.suppress(OSError):
                folder.rmdir()


def describe_cgroups(cgroups: Cgroups | None) -> str:
    """For whoever starts gpu-dev: what is limited, and what to do where it is not."""
    enforced = cgroups.controllers if cgroups else ()
    missing = [name for name in ALL_CONTROLLERS if name not in enforced]
    return say(fact("cgroup_limits", limited=enforced, missing=missing, is_root=os.geteuid() == 0))


def limit_files(limits: Limits, controllers: Collection[str]) -> dict[str, str]:
    """What to write to which file of a server's cgroup."""
    files = {
        "memory": {"memory.max": str(limits.memory_bytes)},
        "cpu": {"cpu.max": f"{max(1000, int(limits.cpus * _PERIOD_MICROSECONDS))} {_PERIOD_MICROSECONDS}"},
        "pids": {"pids.max": str(limits.processes)},
    }
    return {name: value for controller in controllers for name, value in files[controller].items()}


def open_cgroups(wanted: Path | None) -> Cgroups | None:
    """The cgroup of the settings, or our own if it is delegated; None if it cannot be divided."""
    root = wanted or find_delegated(Path("/proc/self"))
    if root is None:
        return None
    try:
        return _divide(root)
    except OSError:
        return None


def find_delegated(process: Path) -> Path | None:
    """Our own cgroup if it is delegated. `process` is our folder in /proc."""
    own = _find_own(process)
    if own is None:
        return None
    root = own.parent if own.name == _CONTROL else own
    return root if _is_delegated(root) else None


def _find_own(process: Path) -> Path | None:
    try:
        paths = [line[3:] for line in (process / "cgroup").read_text().splitlines() if line.startswith("0::")]
        mounts = (process / "mountinfo").read_text().splitlines()
    except OSError:
        return None
    for mount in mounts:
        before, _, after = mount.partition(" - ")
        if paths and after.startswith("cgroup2 "):
            top, at = before.split()[3:5]
            return Path(at) / os.path.relpath(paths[0], top)
    return None


def _is_delegated(root: Path) -> bool:
    if not os.access(root / "cgroup.subtree_control", os.W_OK):
        return False
    user = os.geteuid()
    return (user != 0 and root.stat().st_uid == user) or any(
        _has_mark(root, name) for name in _DELEGATION_MARKS
    )


def _has_mark(root: Path, name: str) -> bool:
    try:
        return os.getxattr(root, name) == b"1"
    except OSError:
        return False


def _divide(root: Path) -> Cgroups | None:
    available = (root / "cgroup.controllers").read_text().split()
    controllers = tuple(name for name in ALL_CONTROLLERS if name in available)
    if not controllers:
        return None
    for _ in range(_TRIES_TO_EMPTY):
        if not _move_processes(root):
            break
    (root / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers))
    return Cgroups(root, controllers)


def _move_processes(root: Path) -> bool:
    """Whether there were any; they are in a cgroup of their own below now."""
    pids = (root / "cgroup.procs").read_text().split()
    if not pids:
        return False
    control = root / _CONTROL
    control.mkdir(exist_ok=True)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            (control / "cgroup.procs").write_text(pid)
    return True
