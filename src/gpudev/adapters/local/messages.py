"""Writing a line to every open terminal of a dev server, from outside it.

It reaches shells, tmux panes and whatever else is on a terminal there. Best effort: a terminal that is
stopped or full loses the line, and nothing waits for it.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from gpudev.adapters.local.processes.descendants import find_strays
from gpudev.adapters.local.record import ServerProcesses
from gpudev.adapters.local.sandbox.isolation import Isolation

_TERMINALS = "dev/pts"
_STANDARD_DESCRIPTORS = (0, 1, 2)


def write_to_terminals(name: str, processes: ServerProcesses, line: str) -> int:
    """Write the line; says how many terminals took it."""
    if processes.isolation is Isolation.BUBBLEWRAP:
        # The first process is bubblewrap's, so what it has at its root is not for users to change.
        terminals = _list_terminals(Path(f"/proc/{processes.root.pid}/root", _TERMINALS))
    else:
        terminals = _terminals_of(find_strays(name))
    text = f"\r\n{line}\r\n".encode()
    return sum(1 for terminal in sorted(terminals) if _write(terminal, text))


def _list_terminals(directory: Path) -> set[Path]:
    try:
        return {entry for entry in directory.iterdir() if entry.name.isdecimal()}
    except (FileNotFoundError, ProcessLookupError):
        return set()


def _terminals_of(pids: Iterable[int]) -> set[Path]:
    found: set[Path] = set()
    for pid in pids:
        for descriptor in _STANDARD_DESCRIPTORS:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
                found.add(Path(f"/proc/{pid}/fd/{descriptor}").readlink())
    return {path for path in found if path.is_relative_to(f"/{_TERMINALS}")}


def _write(terminal: Path, text: bytes) -> bool:
    try:
        descriptor = os.open(
            terminal, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        )
    except OSError:
        # Closed since it was listed, or hung up.
        return False
    try:
        return stat.S_ISCHR(os.fstat(descriptor).st_mode) and os.write(descriptor, text) == len(text)
    except OSError:
        return False
    finally:
        os.close(descriptor)
