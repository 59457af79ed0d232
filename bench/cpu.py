"""How long the processors have worked: for one process, and for all of the machine."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_IDLE = (3, 4)
"""Which columns of `/proc/stat` are waiting: for anything, and for a disk."""


def of_process(pid: int) -> float:
    """Seconds so far, with those of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS


def of_machine() -> float:
    """Seconds so far of all processors together in which there was something to do."""
    columns = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]
    return sum(int(ticks) for place, ticks in enumerate(columns) if place not in _IDLE) / _TICKS
