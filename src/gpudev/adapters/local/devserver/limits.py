"""What one dev server may use of this machine.

Limits of processes (rlimits) work everywhere. Memory, CPU and the number of processes of a whole server are
limited by a cgroup, where gpu-dev has been given one to divide (`cgroups`).
"""

from __future__ import annotations

import resource
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from gpudev.domain.catalogue import Share
from gpudev.texts.fact import Fact, fact

_GIB = 1024**3
_FEWEST_PROCESSES = 4096
_MOST_PROCESSES = 32768
_PROCESSES_PER_CPU = 1024
"""Threads count as processes, and libraries start several for each core."""
_OPEN_FILES = 65536

ALL_CONTROLLERS = ("memory", "cpu", "pids")


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
