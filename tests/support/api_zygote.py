"""`python -m tests.support.api_zygote FD`: has the API imported, and forks a process of it for each order.

To import everything takes two seconds of CPU, and most modules of tests start an API of their own. What is
forked runs `gpu-dev server api` from its first line on, with an environment and descriptors of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import NoReturn

_MOST_BYTES = 1 << 20
_GOES_WITH = 4
"""Descriptors of an order: the socket that it serves, stdout, stderr, and where its end is told."""


@dataclass(slots=True)
class ForkedApi:
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
            os.kill(self.pid, number)


def fork_api(environment: Mapping[str, str], listener: socket.socket) -> ForkedApi:
    """A process that serves this socket."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    orders = _start_zygote()
    with theirs:
        order = json.dumps(dict(environment)).encode()
        socket.send_fds(orders, [order], [listener.fileno(), 1, 2, theirs.fileno()])
    return ForkedApi(int(ours.recv(_MOST_BYTES)), ours)


@cache
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
    import gpudev.bootstrap.api  # noqa: F401, PLC0415 - the point of it all; not for those who give the orders

    orders = socket.socket(fileno=int(sys.argv[1]))
    running: dict[int, tuple[int, socket.socket]] = {}
    poll = select.poll()
    poll.register(orders, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor in running:
                poll.unregister(descriptor)
                _tell_end(descriptor, *running.pop(descriptor))
            elif not _take_order(orders, running, poll):
                for pid, _ in running.values():
                    os.kill(pid, signal.SIGKILL)
                return


def _take_order(
    orders: socket.socket, running: dict[int, tuple[int, socket.socket]], poll: select.poll
) -> bool:
    order, descriptors, _, _ = socket.recv_fds(orders, _MOST_BYTES, _GOES_WITH)
    if not order:
        return False
    listener, stdout, stderr, end = descriptors
    pid = os.fork()
    if pid == 0:
        orders.close()
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        for descriptor in (stdout, stderr, end, *running):
            os.close(descriptor)
        _serve(json.loads(order), listener)
    for descriptor in (listener, stdout, stderr):
        os.close(descriptor)
    teller = socket.socket(fileno=end)
    teller.send(str(pid).encode())
    watched = os.pidfd_open(pid)
    running[watched] = (pid, teller)
    poll.register(watched, select.POLLIN)
    return True


def _tell_end(descriptor: int, pid: int, teller: socket.socket) -> None:
    os.close(descriptor)
    _, status = os.waitpid(pid, 0)
    with teller, contextlib.suppress(BrokenPipeError):  # whoever asked for it may be gone
        teller.send(str(os.waitstatus_to_exitcode(status)).encode())


def _serve(environment: Mapping[str, str], listener: int) -> NoReturn:
    from gpudev.cli.main import main as gpu_dev  # noqa: PLC0415 - as above

    os.environ.clear()
    os.environ.update(environment, GPU_DEV_API_FD=str(listener))
    sys.argv = ["gpu-dev", "server", "api"]
    code: object = 0
    try:
        gpu_dev()
    except SystemExit as end:
        code = end.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    main()
