"""The port of a dev server, on the loopback address. Who binds it has it; nothing else decides."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import random
import socket
from collections.abc import Collection

from gpudev.domain.errors import ClusterUnavailable
from gpudev.domain.server import SshAddress

HOST = "127.0.0.1"
PORTS = range(30000, 32768)
_BACKLOG = 128
_BANNER_SECONDS = 10


class PortTaken(Exception):
    """Another process listens on the port."""


def bind_any_port(promised: Collection[int] = ()) -> socket.socket:
    """A listening socket on some port that nobody has, and that is not promised to anybody either."""
    for port in random.sample(PORTS, len(PORTS)):
        with contextlib.suppress(PortTaken):
            if port not in promised:
                return bind_port(port)
    raise ClusterUnavailable(
        f"All ports from {PORTS.start} to {PORTS.stop - 1} on {HOST} are in use.",
        hint="End some dev servers: gpu-dev list",
    )


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
            raise PortTaken(f"Port {port} is in use by another process.") from error
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
    return line.decode(errors="replace").strip()
