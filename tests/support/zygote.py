"""`python -m tests.support.zygote FD`: has the product imported, and forks a `gpu-dev` for each order.

A command line takes a tenth of a second of CPU for imports, an API two seconds, and tests start hundreds of
them. What is forked runs `gpu-dev` from its first line on, as a process with an environment, a folder and
descriptors of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

_MOST_BYTES = 1 << 20
_LISTENER = "GPU_DEV_API_FD"
_starting = threading.Lock()
_zygotes: list[socket.socket] = []


@dataclass(slots=True)
class Forked:
    """A `gpu-dev` that runs, or has run."""

    pid: int
    end: socket.socket = field(repr=False)
    returncode: int | None = None

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def wait(self, timeout: float) -> int:
        if self.returncode is None:
            self.end.settimeout(timeout)
            self.returncode = int(self.end.recv(_MOST_BYTES))
            self.end.close()
        return self.returncode

    def _send(self, number: signal.Signals) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended, and nobody has waited for it yet
                os.kill(self.pid, number)


def fork_api(environment: Mapping[str, str], listener: socket.socket) -> Forked:
    """A process that serves this socket."""
    return _fork(["gpu-dev", "server", "api"], environment, (0, 1, 2, listener.fileno()))


def run_gpu_dev(
    words: Sequence[str], environment: Mapping[str, str], seconds: float
) -> subprocess.CompletedProcess[str]:
    """One command to its end, without anything to read. The first word is what it is called by."""
    with (
        Path(os.devnull).open() as nothing,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
    ):
        process = _fork(words, environment, (nothing.fileno(), out.fileno(), err.fileno()))
        try:
            code = process.wait(seconds)
        except TimeoutError:
            process.kill()
            process.wait(seconds)
            raise subprocess.TimeoutExpired(list(words), seconds, _read(out), _read(err)) from None
        return subprocess.CompletedProcess(list(words), code, _read(out), _read(err))


def _read(file: Any) -> str:
    file.seek(0)
    return str(file.read())


def _fork(words: Sequence[str], environment: Mapping[str, str], descriptors: Sequence[int]) -> Forked:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with _starting:
        if not _zygotes:
            _zygotes.append(_start_zygote())
    with theirs:
        order = {"words": list(map(str, words)), "environment": dict(environment), "folder": str(Path.cwd())}
        socket.send_fds(_zygotes[0], [json.dumps(order).encode()], [theirs.fileno(), *descriptors])
    return Forked(int(ours.recv(_MOST_BYTES)), ours)


def _start_zygote() -> socket.socket:
    """One for this test process, until its end."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-m", __spec__.name, str(theirs.fileno())]
        process = subprocess.Popen(command, pass_fds=(theirs.fileno(),))

    def stop() -> None:
        ours.close()
        process.wait()

    atexit.register(stop)
    return ours


def main() -> None:
    _import_product()
    orders = socket.socket(fileno=int(sys.argv[1]))
    running: dict[int, tuple[int, socket.socket]] = {}
    poll = select.poll()
    poll.register(orders, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor in running:
                poll.unregister(descriptor)
                _tell_end(descriptor, *running.pop(descriptor))
            elif (started := _take_order(orders)) is None:
                for pid, _ in running.values():
                    os.kill(pid, signal.SIGKILL)
                return
            else:
                watched = os.pidfd_open(started[0])
                running[watched] = started
                poll.register(watched, select.POLLIN)


def _import_product() -> None:
    """What a command imports when it runs, too."""
    commands = importlib.import_module("gpudev.cli.commands")
    for entry in pkgutil.iter_modules(commands.__path__, f"{commands.__name__}."):
        importlib.import_module(entry.name)
    for package in ("gpudev.cli", "gpudev.client", "gpudev.wire"):
        for entry in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
            importlib.import_module(entry.name)
    importlib.import_module("gpudev.bootstrap.api")
    importlib.import_module("gpudev.bootstrap.one_machine")


def _take_order(orders: socket.socket) -> tuple[int, socket.socket] | None:
    """The process that was ordered, and whom its end is told to; None when nobody is left to order any."""
    order, descriptors, _, _ = socket.recv_fds(orders, _MOST_BYTES, 8)
    if not order:
        return None
    end, *given = descriptors
    pid = os.fork()
    if pid == 0:
        orders.close()
        os.close(end)
        _become(json.loads(order), given)
    for descriptor in given:
        os.close(descriptor)
    teller = socket.socket(fileno=end)
    teller.send(str(pid).encode())
    return pid, teller


def _tell_end(descriptor: int, pid: int, teller: socket.socket) -> None:
    os.close(descriptor)
    _, status = os.waitpid(pid, 0)
    with teller, contextlib.suppress(BrokenPipeError):  # whoever asked for it may be gone
        teller.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(order: Mapping[str, Any], descriptors: Sequence[int]) -> NoReturn:
    from gpudev.cli.main import main as gpu_dev  # noqa: PLC0415 - only the zygote has the product

    for number in range(3):
        os.dup2(descriptors[number], number)
    os.environ.clear()
    os.environ.update(order["environment"])
    if len(descriptors) > 3:
        os.environ[_LISTENER] = str(descriptors[3])
    time.tzset()
    os.chdir(order["folder"])
    sys.argv = order["words"]
    code: object = 1
    try:
        gpu_dev()
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 - the process ends here: told as Python tells it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


if __name__ == "__main__":
    main()
