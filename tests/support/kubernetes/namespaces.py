"""A machine in the machine: one process that holds namespaces of its own, for a node to run in.

When that process is killed the kernel ends all the others in there, containers too, and with the last of them
go their mounts, links and packet filters. So nothing of a node can be left behind.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.kubernetes.processes import Process
from tests.support.kubernetes.programs import get_program


@dataclass(frozen=True, slots=True)
class Namespaces:
    """Processes, mounts, network, host name and IPC, apart from those of this machine."""

    name: str
    processes: Path
    """The folder of the records of processes."""

    @property
    def init(self) -> Process:
        return Process(f"{self.name}-init", self.processes)

    def open(self) -> None:
        unshare = [*_program("unshare"), "--mount", "--net", "--pid", "--uts", "--ipc", "--fork"]
        self.init.start([*unshare, "--mount-proc", "--kill-child", get_program("pause")], wrapped=True)
        # /run is where sockets and network namespaces of containers go: the node's own.
        self.run("mount", "-t", "tmpfs", "-o", "mode=0755", f"{self.name}-run", "/run")
        self.run("mount", "--make-rshared", "/")
        self.run("hostname", self.name)

    def close(self) -> None:
        self.init.stop(signal.SIGKILL)

    def wrap(self, command: Sequence[str]) -> list[str]:
        enter = ["--mount", "--net", "--pid", "--uts", "--ipc", "--target", str(self.init.get_pid())]
        return [*_program("nsenter"), *enter, "--", *command]

    def run(self, *command: str) -> str:
        """Run a command in there; its output."""
        done = subprocess.run(self.wrap(command), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
        return done.stdout


def _program(name: str) -> list[str]:
    return [shutil.which(name) or name]
