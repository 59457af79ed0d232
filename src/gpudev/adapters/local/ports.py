"""SSH ports of dev servers, on the loopback address: bind one, keep a pool of them bound, read a banner.

The process that binds a port owns it; nothing else decides.

Sandboxes share the machine's network, so one of them can bind every port that is free. The pool binds one
port for each dev server that the fleet has room for, when the cluster opens. A port stays bound here for as
long as the cluster is open: while it waits in the pool, while a dev server uses it (the server has a copy of
the descriptor) and after that server has ended.

Every socket here listens. A socket that is only bound would not do: with SO_REUSEADDR on both sides the
kernel lets another process bind the same port.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import random
import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass

from gpudev.domain.errors import ClusterUnavailable
from gpudev.domain.names import make_printable
from gpudev.domain.server import SshAddress

HOST = "127.0.0.1"
_BACKLOG = 128
_BANNER_SECONDS = 10
_ANY_PORT = 0
_LONGEST_BANNER = 255
"""As SSH has it."""
MAX_PORTS = 256
"""More dev servers than this take their ports as they come: each bound port is an open file."""


class PortTaken(ClusterUnavailable):
    """Another process listens on the port."""


class NoPortFree(ClusterUnavailable):
    """Other processes have every port that a dev server could get."""


@dataclass(frozen=True, slots=True)
class PortRange:
    """Where the ports of dev servers are."""

    ports: range = range(30000, 32768)
    is_strict: bool = False
    """If not, any other port of the machine is used once all of these are taken."""


DEFAULT_PORTS = PortRange()


def bind_any_port(promised: Collection[int] = (), allowed: PortRange = DEFAULT_PORTS) -> socket.socket:
    """A listening socket on some port that nobody has, and that is not promised to anybody either."""
    for port in random.sample(allowed.ports, len(allowed.ports)):
        with contextlib.suppress(PortTaken):
            if port not in promised:
                return bind_port(port)
    if not allowed.is_strict:
        with contextlib.suppress(PortTaken):
            return bind_port(_ANY_PORT)
    raise NoPortFree("no_port_free", first=allowed.ports.start, last=allowed.ports.stop - 1)


def bind_port(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # Connections of the server's last life may linger; its next one takes the port all the same.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PortTaken("port_in_use", port=port) from error
        raise
    return listener


async def read_banner(address: SshAddress) -> str:
    """The first line that an SSH server says, or "" if none comes."""
    try:
        async with asyncio.timeout(_BANNER_SECONDS):
            reader, writer = await asyncio.open_connection(address.host, address.port)
            try:
                line = await reader.readline()
            finally:
                writer.close()
    except (OSError, ValueError):
        return ""
    return make_printable(line.decode(errors="replace").strip(), _LONGEST_BANNER)


def choose_pool_size(slots: int, placed: int) -> int:
    """How many ports to bind for a fleet with so many slots, of which so many are in use already."""
    return max(0, min(slots, MAX_PORTS) - placed)


class PortPool:
    def __init__(
        self,
        allowed: PortRange = DEFAULT_PORTS,
        list_promised: Callable[[], Collection[int]] = tuple,
    ) -> None:
        self._allowed = allowed
        self._list_promised = list_promised
        """Ports that dev servers are known by, bound or not."""
        self._listeners: list[socket.socket] = []

    def __len__(self) -> int:
        return len(self._listeners)

    def fill(self, count: int) -> None:
        """Bind so many ports, or as many as are free."""
        with contextlib.suppress(NoPortFree):
            while len(self._listeners) < count:
                self._listeners.append(self._bind())

    def take(self, count: int = 1) -> list[socket.socket]:
        """So many listening sockets, or `NoPortFree` and none."""
        self.fill(count)
        if len(self._listeners) < count:
            self._listeners.append(self._bind())
        taken, self._listeners = self._listeners[:count], self._listeners[count:]
        for listener in taken:
            _refuse_waiting(listener)
        return taken

    def give_back(self, listener: socket.socket) -> None:
        """The port of a dev server that has ended."""
        _refuse_waiting(listener)
        self._listeners.append(listener)

    def reclaim(self, port: int) -> None:
        """The port of an ended dev server that was started before this pool was there."""
        with contextlib.suppress(PortTaken):
            self._listeners.append(bind_port(port))

    def close(self) -> None:
        for listener in self._listeners:
            listener.close()
        self._listeners = []

    def _bind(self) -> socket.socket:
        return bind_any_port(self._list_promised(), self._allowed)


def _refuse_waiting(listener: socket.socket) -> None:
    """Close what has connected while no dev server was behind the port: it was meant for an earlier one."""
    listener.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            connection, _ = listener.accept()
            connection.close()
