"""The whole product on this machine, for tests that use it as a person would: by command line and SSH."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gpudev.adapters.local.server_processes import stop_all_servers
from gpudev.client.config import Surroundings
from gpudev.client.session import Client, connect
from tests.support.postgres import as_app
from tests.support.zygote import run_gpu_dev

_GPU_DEV = Path(sys.executable).with_name("gpu-dev")
_DEADLINE_SECONDS = 60.0
_LIVE = ("pending", "queued", "preparing", "active", "stopped")
_COMMAND_SECONDS = 240.0
"""`up` starts a database and several processes, perhaps on a machine with much else to do."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A home, a state folder and the settings that `gpu-dev` gets there."""

    home: Path
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def state_dir(self) -> Path:
        return self.home / "state"

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        return {**kept, "HOME": str(self.home), "NO_COLOR": "1", **self.settings}

    def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """One `gpu-dev` command."""
        done = run_gpu_dev([str(_GPU_DEV), *arguments], self.environment, _COMMAND_SECONDS)
        assert not check or done.returncode == 0, f"{arguments}: {done.stdout}\n{done.stderr}"
        return done

    def ask(self, *arguments: str) -> Any:
        """One `gpu-dev` command that answers in JSON."""
        return json.loads(self.run(*arguments, "--json").stdout)

    def up(self, *arguments: str) -> None:
        self.run("up", "--detach", "--state-dir", str(self.state_dir), *arguments)

    def down(self) -> None:
        self.run("down", "--yes", "--state-dir", str(self.state_dir))

    def reserve(self, *arguments: str) -> str:
        """Wait for an active reservation; its id."""
        job: dict[str, Any] = self.ask("reserve", "--yes", *arguments)
        return str(job["reservation_id"])

    def submit(self, *arguments: str) -> str:
        """Ask for a reservation and do not wait for it; its id."""
        return self.reserve("--no-wait", *arguments)

    def show(self, reservation: str) -> dict[str, Any]:
        job: dict[str, Any] = self.ask("show", reservation)
        return job

    def list(self) -> list[dict[str, Any]]:
        jobs: list[dict[str, Any]] = self.ask("list", "--all")["jobs"]
        return jobs

    def end_reservations(self) -> None:
        """All that are live, until nothing is left of them."""
        with closing(self.client()) as client:
            live = [job.job_id for job in client.list(limit=500, statuses=_LIVE).jobs]
            for reservation in live:
                client.cancel(reservation)
            for reservation in live:
                client.wait_until_clean(reservation, timeout=_DEADLINE_SECONDS)

    def client(self) -> Client:
        """The SDK, for what would take too long by command line; one a thread."""
        config = self.home / ".config" / "gpu-dev" / "config.json"
        return connect(Surroundings(self.home, config))

    def ssh(self, reservation: str, command: str) -> subprocess.CompletedProcess[str]:
        return self.run("connect", reservation, "--", command, check=False)

    def control_plane(self) -> dict[str, int]:
        """The pids of the control plane's processes by what they are."""
        top = int(json.loads((self.state_dir / "control-plane").read_text())["process"]["pid"])
        found = {"up": top}
        for pid, parent, words in _processes():
            if parent == top and "server" in words:
                found[words[words.index("server") + 1]] = pid
            elif parent == top and any("postgres" in word for word in words):
                found["postgres"] = pid
        return found

    def kill(self, *names: str) -> None:
        """`kill -9` of these processes of the control plane, as nearly at once as can be."""
        pids = self.control_plane()
        for name in names:
            os.kill(pids[name], signal.SIGKILL)


def on_database(dsn: str) -> dict[str, str]:
    """Settings for a machine on a database of the tests' own server, which saves it one of its own."""
    return {"GPU_DEV_DATABASE_URL": as_app(dsn), "GPU_DEV_DATABASE_OWNER_URL": dsn}


@contextmanager
def running_machine(*arguments: str, **settings: str) -> Iterator[Machine]:
    with TemporaryDirectory(prefix="gpu-dev-machine-") as folder:
        machine = Machine(Path(folder), settings)
        try:
            machine.up(*arguments)
            yield machine
        finally:
            machine.down()
            stop_all_servers(machine.state_dir)


def wait_for(condition: Callable[[], Any], what: str, seconds: float = _DEADLINE_SECONDS) -> Any:
    """Ask again and again until the condition holds: what it waits for is in another process."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"Not in {seconds} seconds: {what}"
        time.sleep(0.05)
    return found


def list_children(parent: int, program: str) -> list[int]:
    """The pids of a process's own children that run this program."""
    return [pid for pid, owner, words in _processes() if owner == parent and Path(words[0]).name == program]


def _processes() -> Iterator[tuple[int, int, list[str]]]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            parent = int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1])
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        yield int(entry.name), parent, words
