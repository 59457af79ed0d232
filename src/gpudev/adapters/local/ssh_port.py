"""The port of a dev server, on the loopback address. Who binds it has it; nothing else decides."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import random
import socket
from collections.abc import Collection
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
