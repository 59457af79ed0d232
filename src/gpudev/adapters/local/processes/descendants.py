"""Ending everything that came from one process, where there is no sandbox to end as a whole."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

from gpudev.adapters.local.processes.identity import find_parent, identify, list_pids
from gpudev.domain.errors import ClusterUnavailable

_SECONDS_TO_DIE = 10
_ROUND_SECONDS = 0.01

MARK = "GPU_DEV_SERVER"
"""The environment variable by which strays of a server are known: it has the server's name."""
_MARKED = f"{MARK}=".encode()


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
