"""A `gpu-dev submit` under way, whose connection can be cut."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.machine import Machine, list_children, wait_for

_GPU_DEV = Path(sys.executable).with_name("gpu-dev")
_DEADLINE_SECONDS = 60.0


class Submitted:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._pieces: dict[str, list[bytes]] = {"output": [], "errors": []}
        self._readers = [
            threading.Thread(target=self._read, args=(process.stdout, "output")),
            threading.Thread(target=self._read, args=(process.stderr, "errors")),
        ]
        for reader in self._readers:
            reader.start()

    @property
    def output(self) -> str:
        return b"".join(self._pieces["output"]).decode()

    @property
    def errors(self) -> str:
        return b"".join(self._pieces["errors"]).decode()

    def wait_for_output(self, ending: str) -> None:
        wait_for(lambda: self.output.endswith(ending), f"{ending!r} after {self.output!r}; {self.errors}")

    def cut(self) -> None:
        """Kill the `ssh` that follows the command; another one must come."""
        (pid,) = wait_for(lambda: list_children(self.process.pid, "ssh"), "a connection")
        os.kill(pid, signal.SIGKILL)
        wait_for(
            lambda: pid not in (found := list_children(self.process.pid, "ssh")) and found, "another one"
        )

    def kill(self) -> None:
        """`kill -9`, also of its connection, as when a machine goes down."""
        children = list_children(self.process.pid, "ssh")
        self.process.kill()
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        self.end()

    def end(self) -> int:
        code = self.process.wait(_DEADLINE_SECONDS)
        for reader in self._readers:
            reader.join()
        return code

    def _read(self, pipe: object, name: str) -> None:
        descriptor = pipe.fileno()  # type: ignore[attr-defined]  # it is the pipe of a process
        while piece := os.read(descriptor, 65536):
            self._pieces[name].append(piece)


@contextmanager
def submitting(machine: Machine, *arguments: str) -> Iterator[Submitted]:
    process = subprocess.Popen(
        [_GPU_DEV, "submit", *arguments],
        env=machine.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        submitted = Submitted(process)
        try:
            yield submitted
        finally:
            process.terminate()
            submitted.end()
