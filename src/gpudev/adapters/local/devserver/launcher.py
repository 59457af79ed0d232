"""Starting dev servers: through the zygote, or one program each where the zygote cannot run."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import structlog

from gpudev.adapters.local.devserver.order import HELLO, SERVING, OrderDescriptors, StartOrder
from gpudev.adapters.local.processes.descriptors import read_some
from gpudev.adapters.local.processes.linux import raise_priority

_log = structlog.get_logger(__name__)

_TRIES = 2
_SECONDS_TO_START = 30
_SECONDS_TO_END = 5
_KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "TZ", "HOME", "LD_LIBRARY_PATH", "PYTHONPATH")
"""The control plane's environment holds secrets; a dev server's processes get none of it but this."""


class StartFailed(Exception):
    """The dev server did not come to serve; its log says why."""


class Launcher:
    """Owns the zygote of one cluster."""

    def __init__(self, log_path: Path) -> None:
        self._log_path = log_path
        self._zygote: _Zygote | None = None
        self._lock = asyncio.Lock()

    async def start(self, order: StartOrder, listener: socket.socket) -> None:
        """Start the server of this order; returns when it accepts connections on the listener."""
        status, their_status = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            try:
                await self._send(order, OrderDescriptors(listener.fileno(), their_status))
            finally:
                os.close(their_status)
            if await _read_status(status) != SERVING:
                raise StartFailed
        finally:
            os.close(status)

    async def close(self) -> None:
        """Let the zygote go. What it started runs on."""
        if self._zygote is not None:
            await self._drop(self._zygote)

    async def warm_up(self) -> None:
        """Have the zygote ready before the first server is wanted."""
        await self._find_zygote()

    async def _send(self, order: StartOrder, descriptors: OrderDescriptors) -> None:
        for _ in range(_TRIES):
            zygote = await self._find_zygote()
            if zygote is None:
                break
            try:
                return await asyncio.to_thread(zygote.send, order, descriptors)
            except OSError as error:
                _log.warning("zygote_lost", error=str(error))
                await self._drop(zygote)
        _log.error("zygote_unusable", consequence="slow_starts")
        return await asyncio.to_thread(self._start_plain, order, descriptors)

    async def _find_zygote(self) -> _Zygote | None:
        """The zygote, started again if need be; None if it cannot be started, with its words in the log."""
        async with self._lock:
            if self._zygote is None:
                try:
                    self._zygote = await asyncio.to_thread(_Zygote.start, self._log_path)
                except OSError as error:
                    _log.warning("zygote_not_started", error=str(error), log=str(self._log_path))
            return self._zygote

    async def _drop(self, zygote: _Zygote) -> None:
        async with self._lock:
            if self._zygote is zygote:
                self._zygote = None
        await asyncio.to_thread(zygote.close)

    def _start_plain(self, order: StartOrder, descriptors: OrderDescriptors) -> None:
        """The program ends at once and leaves the keeper behind, which is nobody's child then."""
        numbers = (descriptors.listener, descriptors.status)
        arguments = [order.to_json(), *(str(number) for number in numbers)]
        _start_program("keeper", arguments, numbers, self._log_path).wait()


class _Zygote:
    """The zygote's process and our end of its socket."""

    def __init__(self, process: subprocess.Popen[bytes], owner_socket: socket.socket) -> None:
        self._process = process
        self._socket = owner_socket

    @classmethod
    def start(cls, log_path: Path) -> _Zygote:
        """Blocks until it can take orders."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(_SECONDS_TO_START)
        with contextlib.ExitStack() as undo:
            undo.callback(ours.close)
            with theirs:
                number = theirs.fileno()
                process = _start_program("zygote", [str(number)], (number,), log_path)
                zygote = cls(process, ours)
                raise_priority(process.pid)
            undo.callback(zygote.close)
            if ours.recv(len(HELLO)) != HELLO:
                raise ConnectionResetError("zygote_ended_early")
            undo.pop_all()
        return zygote

    def send(self, order: StartOrder, descriptors: OrderDescriptors) -> None:
        numbers = [descriptors.listener, descriptors.status]
        socket.send_fds(self._socket, [order.to_json().encode()], numbers)

    def close(self) -> None:
        """It ends by itself when its socket closes; one that does not is ended."""
        self._socket.close()
        try:
            self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _start_program(
    module: str, arguments: list[str], descriptors: tuple[int, ...], log_path: Path
) -> subprocess.Popen[bytes]:
    """One of our programs, in its own session and with nothing inherited but what is named."""
    environment = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    with log_path.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", f"{__package__}.{module}", *arguments],
            env=environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=descriptors,
            start_new_session=True,
        )


async def _read_status(status: int) -> bytes:
    try:
        async with asyncio.timeout(_SECONDS_TO_START):
            return await read_some(status)
    except TimeoutError:
        return b""
