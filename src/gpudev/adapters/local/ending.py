"""Ending a dev server's processes, checked by identity, in whatever way it was started."""

from __future__ import annotations

import signal

from gpudev.adapters.local.processes.descendants import end_strays
from gpudev.adapters.local.processes.identity import holding
from gpudev.adapters.local.record import ServerProcesses
from gpudev.adapters.local.sandbox.isolation import Isolation
from gpudev.domain.errors import ClusterUnavailable

_SECONDS_TO_STOP = 5
_SECONDS_TO_DIE = 2


def end_server(name: str, processes: ServerProcesses | None) -> None:
    """Blocks until no process of the server of this name is left. Nothing running is success."""
    if processes is not None:
        _end_root(processes)
    if processes is None or processes.isolation is Isolation.NONE:
        end_strays(name)


def _end_root(processes: ServerProcesses) -> None:
    with holding(processes.root) as process:
        if process is None:
            return
        if processes.isolation is Isolation.NONE:
            # Its keeper knows all that came from it, and ends it before itself.
            process.send_signal(signal.SIGTERM)
            if process.wait_blocking(_SECONDS_TO_STOP):
                return
        process.send_signal(signal.SIGKILL)
        if not process.wait_blocking(_SECONDS_TO_DIE):
            raise ClusterUnavailable("process_does_not_end", pid=processes.root.pid)
