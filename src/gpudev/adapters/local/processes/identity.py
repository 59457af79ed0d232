"""Processes by identity, and their descendants: a pid alone may be reused by the time that it is used.

An identity is the pid, the time the process started and the boot it started in. A process that is found
by it is held by a pidfd, which keeps meaning that very process, so signals and waits cannot hit another.

Where there is no sandbox to end as a whole, the descendants of a process are ended one by one.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gpudev.adapters.local.processes.descriptors import wait_readable
from gpudev.domain.errors import ClusterUnavailable

_DEAD_STATES = "ZXx"
_NUMBER_FIELDS = (1, 11, 12, 19)
"""Parent, CPU time in user mode and in the kernel, start time: after the name, and after the state at 0."""
_MOST_DIGITS = 20
"""Of a 64-bit number."""
_SECONDS_TO_DIE = 10
_ROUND_SECONDS = 0.01

MARK = "GPU_DEV_SERVER"
"""The environment variable by which strays of a server are known: it has the server's name."""
_MARKED = f"{MARK}=".encode()


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    pid: int
    start_time: int
    """In clock ticks since the boot, as the kernel counts it."""
    boot_id: str


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    state: str
    parent: int
    start_time: int
    cpu_ticks: int


@cache
def read_boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def identify(pid: int) -> ProcessIdentity | None:
    """The identity of a process that lives now; a zombie does not."""
    found = find_status(pid)
    if found is None or found.state in _DEAD_STATES:
        return None
    return ProcessIdentity(pid, found.start_time, read_boot_id())


def find_parent(pid: int) -> int | None:
    found = find_status(pid)
    return found.parent if found else None


def find_status(pid: int) -> ProcessStatus | None:
    """None for a process that has ended."""
    try:
        content = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return read_status(content)


def read_status(content: bytes) -> ProcessStatus | None:
    """From `/proc/PID/stat`; None if it is cut off. The name in it may be any bytes, also parentheses."""
    fields = content.rpartition(b")")[2].split()
    numbers = [fields[number] for number in _NUMBER_FIELDS if number < len(fields)]
    if len(numbers) < len(_NUMBER_FIELDS) or not all(map(_is_number, numbers)):
        return None
    parent, user, system, start = map(int, numbers)
    return ProcessStatus(fields[0].decode("ascii", "replace"), parent, start, user + system)


def _is_number(word: bytes) -> bool:
    return word.isdigit() and len(word) <= _MOST_DIGITS


def list_pids() -> tuple[int, ...]:
    return tuple(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal())


class HeldProcess:
    """A live process, held by a pidfd until closed."""

    def __init__(self, identity: ProcessIdentity, pidfd: int) -> None:
        self.identity = identity
        self._pidfd = pidfd

    def send_signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, number)

    def wait_blocking(self, seconds: float) -> bool:
        """Whether it ended in time."""
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    async def wait(self) -> None:
        """Until it has ended, told by the kernel."""
        await wait_readable(self._pidfd)

    def close(self) -> None:
        os.close(self._pidfd)


def hold(identity: ProcessIdentity) -> HeldProcess | None:
    """The process of this identity if it is alive, else None. The caller closes what it gets."""
    try:
        pidfd = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return None
    # Only after the pidfd is open does the check say something about the process that it holds.
    if identify(identity.pid) == identity:
        return HeldProcess(identity, pidfd)
    os.close(pidfd)
    return None


@contextlib.contextmanager
def holding(identity: ProcessIdentity) -> Iterator[HeldProcess | None]:
    process = hold(identity)
    try:
        yield process
    finally:
        if process is not None:
            process.close()


def end_descendants(ancestor: int) -> None:
    """Stop, then kill all descendants, and reap those that are children by now.

    A stopped process cannot fork, so once no new one shows up none can be missed. `ancestor` is the
    calling process, and a subreaper, so that orphans are still its descendants.
    """
    stopped: set[int] = set()
    while fresh := find_descendants(ancestor) - stopped:
        for pid in fresh:
            _send(pid, signal.SIGSTOP)
        stopped |= fresh
    for pid in stopped:
        _send(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def find_descendants(ancestor: int) -> set[int]:
    parents = {pid: find_parent(pid) for pid in list_pids()}
    found: set[int] = set()
    while fresh := {
        pid for pid, parent in parents.items() if pid not in found and (parent == ancestor or parent in found)
    }:
        found |= fresh
    return {pid for pid in found if identify(pid) is not None}


def find_strays(server_name: str) -> set[int]:
    """Live processes that carry the mark of a server, whoever their parent is by now."""
    mark = f"{MARK}={server_name}".encode()
    marked = {pid for pid in list_pids() if pid != os.getpid() and mark in _read_environment(pid)}
    return {pid for pid in marked if identify(pid) is not None}


def list_marked() -> Mapping[str, frozenset[int]]:
    """The processes of each server, by its name, from one look at all processes of this machine."""
    found: dict[str, set[int]] = {}
    for pid in list_pids():
        for entry in _read_environment(pid):
            if entry.startswith(_MARKED):
                found.setdefault(entry[len(_MARKED) :].decode(errors="replace"), set()).add(pid)
    return {name: frozenset(pids) for name, pids in found.items()}


def end_strays(server_name: str) -> None:
    """Kill them until none is left; each round may find the children of the round before."""
    deadline = time.monotonic() + _SECONDS_TO_DIE
    while strays := find_strays(server_name):
        if time.monotonic() > deadline:
            raise ClusterUnavailable("processes_do_not_end", pids=sorted(strays))
        for pid in strays:
            _send(pid, signal.SIGKILL)
        time.sleep(_ROUND_SECONDS)


def _read_environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        # It has ended, or is not ours to read.
        return []


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
