"""A dev server that runs now, held by its processes so that the kernel tells when one of them ends."""

from __future__ import annotations

import asyncio

from gpudev.adapters.local.processes.identity import HeldProcess, hold
from gpudev.adapters.local.record import ServerProcesses


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
