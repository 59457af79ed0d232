"""The whole product on this machine, started for a benchmark in a home and a state folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from gpudev.adapters.local.sandbox.isolation import Isolation
from gpudev.client.config import Surroundings
from gpudev.client.session import Client, connect

GPU_TYPE = "t4"
NODES = 16
GPUS_PER_NODE = 4
_GPU_DEV = (sys.executable, "-P", "-m", "gpudev.cli.main")
_KEPT_VARIABLES = ("PATH", "LANG", "TMPDIR", "PYTHONPATH")
_DEADLINE_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Machine:
    home: Path
    isolation: Isolation

    @property
    def fleet_file(self) -> Path:
        return self.home / "fleet.toml"

    def client(self) -> Client:
        """The SDK as a user has it; one a thread."""
        return connect(Surroundings(self.home, self.home / ".config" / "gpu-dev" / "config.json"))

    def write_fleet(self) -> None:
        self.fleet_file.write_text(
            f'[[nodes]]\ntype = "{GPU_TYPE}"\ncount = {NODES}\ngpus = {GPUS_PER_NODE}\n'
        )

    def up(self) -> None:
        self._run("up", "--detach", "--fleet", str(self.fleet_file))

    def down(self) -> None:
        self._run("down", "--yes")

    def _run(self, command: str, *options: str) -> None:
        done = subprocess.run(
            [*_GPU_DEV, command, *options, "--state-dir", self.home / "state"],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_DEADLINE_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"gpu-dev {command} failed: {done.stderr}")

    @property
    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        return {**kept, "HOME": str(self.home), "GPU_DEV_ISOLATION": self.isolation}


@contextmanager
def running_machine(isolation: Isolation) -> Iterator[Machine]:
    with TemporaryDirectory(prefix="gpu-dev-bench-") as folder:
        machine = Machine(Path(folder), isolation)
        machine.write_fleet()
        machine.up()
        try:
            yield machine
        finally:
            machine.down()
