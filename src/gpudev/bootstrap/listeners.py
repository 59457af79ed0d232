"""The sockets that the API serves; `gpu-dev up` and the parent of workers make them and serve nothing."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gpudev.settings import Settings

BACKLOG = 2048


@dataclass(frozen=True, slots=True)
class Listeners:
    network: socket.socket
    local: socket.socket | None = None
    """A unix socket."""

    @property
    def descriptors(self) -> tuple[int, ...]:
        return tuple(one.fileno() for one in (self.network, self.local) if one is not None)


@contextmanager
def listening(settings: Settings) -> Iterator[Listeners]:
    """The sockets that were inherited, or one that is made."""
    api = settings.api
    network = (
        socket.socket(fileno=api.socket_fd)
        if api.socket_fd >= 0
        else socket.create_server((api.host, api.port), backlog=BACKLOG)
    )
    with network:
        if api.unix_socket_fd < 0:
            yield Listeners(network)
            return
        with socket.socket(fileno=api.unix_socket_fd) as local:
            yield Listeners(network, local)
