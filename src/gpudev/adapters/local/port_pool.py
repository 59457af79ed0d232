"""Ports that are bound before anybody needs them.

Sandboxes share the machine's network, so one of them can bind every port that is free. The pool binds one
port for each dev server that the fleet has room for, when the cluster opens. A port stays bound here for as
long as the cluster is open: while it waits in the pool, while a dev server uses it (the server has a copy of
the descriptor) and after that server has ended.

Every socket here listens. A socket that is only bound would not do: with SO_REUSEADDR on both sides the
kernel lets another process bind the same port.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Collection

from gpudev.adapters.local.ssh_port import (
    DEFAULT_PORTS,
    NoPortFree,
    PortRange,
    PortTaken,
    bind_any_port,
    bind_port,
)

MAX_PORTS = 256
"""More dev servers than this take their ports as they come: each bound port is an open file."""


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
