"""How well dev servers on this machine are kept apart, found out by trying it."""

from __future__ import annotations

import subprocess
import sys
from enum import StrEnum


class Isolation(StrEnum):
    BUBBLEWRAP = "bubblewrap"
    """Each dev server in a sandbox with its own root, processes, files and shared memory."""
    NONE = "none"
    """Plain processes of the user who started gpu-dev."""

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    Isolation.BUBBLEWRAP: (
        "Dev servers are sandboxed with bubblewrap: they do not see each other's files, processes and "
        "shared memory. They share the machine's network."
    ),
    Isolation.NONE: (
        "Dev servers are NOT isolated: everyone who logs in can read and change everything that the user "
        "who started gpu-dev can. Install bubblewrap to sandbox them."
    ),
}

_PROBE_SECONDS = 20


def probe_isolation() -> Isolation:
    """The best that works here.

    A sandbox is really made and entered, in the mode that would be used: that bubblewrap is installed
    says little, since user namespaces or mounts may be forbidden.
    """
    program = [sys.executable, "-P", "-m", "gpudev.adapters.local.sandbox.sandbox_probe"]
    try:
        done = subprocess.run(program, capture_output=True, timeout=_PROBE_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Isolation.NONE
    return Isolation.BUBBLEWRAP if done.returncode == 0 else Isolation.NONE
