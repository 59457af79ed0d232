"""The control plane comes before dev servers when all of them want a core.

Only root may raise a priority, so a dev server cannot raise its own. Kernels with `autogroup` divide the
cores between sessions first and look at `nice` only within one, so both are set.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_RAISED = -10
_USUAL = 0


def raise_priority(pid: int) -> None:
    """Of a program that we have just started in a session of its own.

    Not where somebody has chosen another priority for all of us.
    """
    if os.getpriority(os.PRIO_PROCESS, 0) not in {_USUAL, _RAISED}:
        return
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, _RAISED)
        Path(f"/proc/{pid}/autogroup").write_text(str(_RAISED), encoding="ascii")


def drop_priority() -> None:
    """Of this process, which is about to start what belongs to a user."""
    if os.getpriority(os.PRIO_PROCESS, 0) < _USUAL:
        os.setpriority(os.PRIO_PROCESS, 0, _USUAL)
