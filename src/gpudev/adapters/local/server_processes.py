"""The processes of a dev server: find those that run, wait for their end, and end them.

Each process is checked by its identity before it is held or signalled. `stop_all_servers` ends every server
of a state directory when no control plane is running.
"""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from gpudev.adapters.local.processes.identity import HeldProcess, end_strays, hold, holding
from gpudev.adapters.local.record import ServerProcesses
from gpudev.adapters.local.records import Records, StateLock
from gpudev.adapters.local.sandbox.isolation import Isolation
from gpudev.domain.errors import ClusterUnavailable

_SECONDS_TO_STOP = 5
_SECONDS_TO_DIE = 2


class RunningServer:
    """Both processes of a server, alive when they were found. It is of use only while both are."""

    def __init__(self, root: HeldProcess, ssh_server: HeldProcess) -> None:
        self._root = root
        self._ssh_server = ssh_server

    @property
    def pid(self) -> int:
        return self._root.identity.pid

    async def wait(self) -> None:
        """Until one of them has ended."""
        waits = [asyncio.create_task(process.wait()) for process in (self._root, self._ssh_server)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    def close(self) -> None:
        self._root.close()
        self._ssh_server.close()


def find_running(processes: ServerProcesses | None) -> RunningServer | None:
    """The server of these processes if both are alive. The caller closes what it gets."""
    if processes is None:
        return None
    root, ssh_server = hold(processes.root), hold(processes.ssh_server)
    if root is not None and ssh_server is not None:
        return RunningServer(root, ssh_server)
    for process in (root, ssh_server):
        if process is not None:
            process.close()
    return None


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


def stop_all_servers(state_dir: Path) -> int:
    """End them with all their processes and remove their records; homes stay. Says how many there were.

    Refused with `Conflict` while a control plane owns the directory: it would start them again.
    """
    if not state_dir.is_dir():
        return 0
    lock = StateLock(state_dir)
    lock.take()
    try:
        return _stop_all(Records(state_dir))
    finally:
        lock.release()


def _stop_all(records: Records) -> int:
    found = records.list_records()
    for record in found:
        end_server(record.name, records.files_of(record.key).find_processes())
        records.set_aside(record)
    records.sweep()
    return len({record.spec.reservation_id for record in found})
