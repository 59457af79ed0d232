"""`python -m tests.support.zygote FD`: has the product imported, and forks a program of it for each order.

A command line takes a tenth of a second of CPU for imports, the zygote of dev servers half a second, an API
two, and tests start hundreds of them. What is forked runs the program from its first line on, as a process
with an environment, a folder and descriptors of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
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
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

_MOST_BYTES = 1 << 20
_READY = b"ready"
_LISTENER = "GPU_DEV_API_FD"
_GPU_DEV = "gpudev.cli.main"
_DEV_SERVER_ZYGOTE = "gpudev.adapters.local.devserver.zygote"
_starting = threading.Lock()
_zygotes: list[socket.socket] = []


@dataclass(slots=True)
class Forked:
    """A program that runs, or has run; to be used as a `subprocess.Popen`."""

    pid: int
    end: socket.socket = field(repr=False)
    returncode: int | None = None

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self.end.settimeout(timeout)
            try:
                self.returncode = int(self.end.recv(_MOST_BYTES))
            except TimeoutError:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0) from None
            self.end.close()
        return self.returncode

    def _send(self, number: signal.Signals) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended, and nobody has waited for it yet
                os.kill(self.pid, number)


def fork_api(environment: Mapping[str, str], listener: socket.socket) -> Forked:
    """A process that serves this socket."""
    return fork_gpu_dev(("server", "api"), {**environment, _LISTENER: "3"}, listener.fileno())


def fork_gpu_dev(words: Sequence[str], environment: Mapping[str, str], *descriptors: int) -> Forked:
    """One that runs on. It has our standard input and output, and these descriptors as 3, 4 and so on."""
    order = _Order(_GPU_DEV, ("gpu-dev", *words), dict(environment), str(Path.cwd()))
    return _fork(order, (0, 1, 2, *descriptors))


def fork_dev_server_zygote(environment: Mapping[str, str], orders: int, log: int) -> Forked:
    """The zygote of a cluster that takes its orders from this descriptor."""
    with Path(os.devnull).open() as nothing:
        order = _Order(_DEV_SERVER_ZYGOTE, ("zygote", "3"), dict(environment), "/", is_session=True)
        return _fork(order, (nothing.fileno(), log, log, orders))


def run_gpu_dev(
    words: Sequence[str], environment: Mapping[str, str], seconds: float
) -> subprocess.CompletedProcess[str]:
    """One command to its end, without anything to read. The first word is what it is called by."""
    with (
        Path(os.devnull).open() as nothing,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
    ):
        order = _Order(_GPU_DEV, tuple(words), dict(environment), str(Path.cwd()))
        process = _fork(order, (nothing.fileno(), out.fileno(), err.fileno()))
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(seconds)
            raise subprocess.TimeoutExpired(list(words), seconds, _read(out), _read(err)) from None
        return subprocess.CompletedProcess(list(words), code, _read(out), _read(err))


def _read(file: Any) -> str:
    file.seek(0)
    return str(file.read())


@dataclass(frozen=True, slots=True)
class _Order:
    module: str
    """Its `main` is the program."""
    words: Sequence[str]
    environment: dict[str, str]
    folder: str
    is_session: bool = False
    """Whether it gets a session of its own."""


def _fork(order: _Order, descriptors: Sequence[int]) -> Forked:
    """The descriptors are 0, 1, 2 and so on for the program, and it has no others."""
    prepare_zygote()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        socket.send_fds(_zygotes[0], [json.dumps(asdict(order)).encode()], [theirs.fileno(), *descriptors])
    return Forked(int(ours.recv(_MOST_BYTES)), ours)


def prepare_zygote() -> None:
    """Return when it can fork. Its imports take seconds, half a minute on a busy machine without bytecode."""
    with _starting:
        if not _zygotes:
            _zygotes.append(_start_zygote())


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
    assert ours.recv(len(_READY)) == _READY, "the zygote ended while it started"
    return ours


def main() -> None:
    _import_product()
    orders = socket.socket(fileno=int(sys.argv[1]))
    orders.send(_READY)
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
    importlib.import_module("gpudev.bootstrap.jobs")
    importlib.import_module("gpudev.bootstrap.one_machine")
    importlib.import_module("gpudev.bootstrap.ssh_proxy")
    importlib.import_module(_DEV_SERVER_ZYGOTE)
    gc.freeze()


def _take_order(orders: socket.socket) -> tuple[int, socket.socket] | None:
    """The process that was ordered, and whom its end is told to; None when nobody is left to order any."""
    order, descriptors, _, _ = socket.recv_fds(orders, _MOST_BYTES, 8)
    if not order:
        return None
    end, *given = descriptors
    pid = os.fork()
    if pid == 0:
        _become(_Order(**json.loads(order)), given)
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


def _become(order: _Order, descriptors: Sequence[int]) -> NoReturn:
    _set_descriptors(descriptors)
    os.environ.clear()
    os.environ.update(order.environment)
    time.tzset()
    os.chdir(order.folder)
    if order.is_session:
        os.setsid()
    sys.argv = list(order.words)
    code: object = 1
    try:
        code = sys.modules[order.module].main()
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 - the process ends here: told as Python tells it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _set_descriptors(given: Sequence[int]) -> None:
    """Make them 0, 1, 2 and so on, and close all others."""
    above = max(*given, len(given)) + 1
    for number, descriptor in enumerate([fcntl.fcntl(one, fcntl.F_DUPFD, above) for one in given]):
        os.dup2(descriptor, number)
    os.closerange(len(given), os.sysconf("SC_OPEN_MAX"))


if __name__ == "__main__":
    main()
