"""A second controller beside the one of a running machine, started again whenever it dies."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from gpudev.adapters.local.supervisor import ENVIRONMENT_NAME
from tests.support.machine import Machine, wait_for

_END_SECONDS = 20.0


def controller_environment(machine: Machine) -> dict[str, str]:
    """The settings that the machine's own controller runs with."""
    folder = wait_for(lambda: _find_controller(machine), "the controller")
    variables = (folder / "environ").read_bytes().rstrip(b"\0").split(b"\0")
    return dict(os.fsdecode(one).split("=", 1) for one in variables)


def _find_controller(machine: Machine) -> Path | None:
    """It may just have been killed, and then it is started again."""
    pid = machine.control_plane().get("controller")
    return Path(f"/proc/{pid}") if pid else None


@contextmanager
def second_controller(machine: Machine) -> Iterator[None]:
    """A child of this process with the command line and the settings of the first."""
    folder = wait_for(lambda: _find_controller(machine), "the controller")
    command = folder.joinpath("cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    environment = controller_environment(machine) | {"GPU_DEV_PARENT_PID": str(os.getpid())}
    del environment[ENVIRONMENT_NAME]
    keeper = _Keeper(machine, command, environment)
    keeper.start()
    try:
        yield
    finally:
        keeper.end()


class _Keeper(Thread):
    def __init__(self, machine: Machine, command: list[bytes], environment: dict[str, str]) -> None:
        super().__init__(name="second-controller")
        self._machine = machine
        self._command = command
        self._environment = environment
        self._is_over = Event()
        self._process = self._spawn()

    def run(self) -> None:
        while not self._is_over.is_set():
            self._process.wait()
            if not self._is_over.is_set():
                self._process = self._spawn()

    def end(self) -> None:
        self._is_over.set()
        while self.is_alive():
            # It may just have been started again.
            self._process.terminate()
            self.join(_END_SECONDS)

    def _spawn(self) -> subprocess.Popen[bytes]:
        log = self._machine.state_dir / "logs" / "second-controller.log"
        with log.open("ab") as output:
            return subprocess.Popen(
                self._command, env=self._environment, stdout=output, stderr=output, cwd=self._machine.home
            )
