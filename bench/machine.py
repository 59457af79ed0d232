"""The whole product on this machine, started for a benchmark in a home and a state folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
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
    settings: Mapping[str, str] = field(default_factory=dict)

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
        self._run("up", "--detach", "--fleet", str(self.fleet_file), "--state-dir", str(self.home / "state"))

    def down(self) -> None:
        self._run("down", "--yes", "--state-dir", str(self.home / "state"))

    def reserve(self) -> str:
        """By command line, so that OpenSSH is set up as well; the id."""
        job = json.loads(self._run("reserve", "--yes", "-t", GPU_TYPE, "--json"))
        return str(job["reservation_id"])

    def find_process(self, part: str) -> int:
        """The pid of a part of the control plane."""
        running = json.loads((self.home / "state" / "control-plane").read_text())
        top = int(running["process"]["pid"])
        children = Path(f"/proc/{top}/task/{top}/children").read_text().split()
        commands = {int(pid): Path(f"/proc/{pid}/cmdline").read_text().split("\0") for pid in children}
        return next(pid for pid, words in commands.items() if part in words)

    def _run(self, command: str, *options: str) -> str:
        done = subprocess.run(
            [*_GPU_DEV, command, *options],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_DEADLINE_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"gpu-dev {command} failed: {done.stderr}")
        return done.stdout

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        return {**kept, "HOME": str(self.home), "GPU_DEV_ISOLATION": self.isolation, **self.settings}


@contextmanager
def running_machine(isolation: Isolation, settings: Mapping[str, str] | None = None) -> Iterator[Machine]:
    with TemporaryDirectory(prefix="gpu-dev-bench-") as folder:
        machine = Machine(Path(folder), isolation, settings or {})
        machine.write_fleet()
        machine.up()
        try:
            yield machine
        finally:
            machine.down()
