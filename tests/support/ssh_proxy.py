"""The SSH proxy as a process of its own, and a dev server's port that answers whatever a test wants."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from gpudev.adapters.local.supervisor import ENVIRONMENT_NAME, ReadyPipe
from gpudev.wire.tunnel import SUBPROTOCOL
from tests.support.postgres import as_app
from tests.support.zygote import Forked, fork_gpu_dev

DEADLINE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class ProxyProcess:
    port: int
    process: Forked

    def open(self, reservation: str, key: str, node: str = "0") -> ClientConnection:
        """A tunnel, by a WebSocket client that is not ours. `InvalidStatus` if it is refused."""
        return connect(
            f"ws://127.0.0.1:{self.port}/v1/jobs/{reservation}/ssh?node={node}",
            additional_headers={"Authorization": f"Bearer {key}"} if key else {},
            subprotocols=[Subprotocol(SUBPROTOCOL)],
            compression=None,
            open_timeout=DEADLINE_SECONDS,
        )


@contextmanager
def running_proxy(dsn: str, **settings: str) -> Iterator[ProxyProcess]:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    ready = ReadyPipe.open()
    own = {
        "GPU_DEV_DATABASE_URL": as_app(dsn),
        "GPU_DEV_SSH_PROXY_PORT": str(port),
        ENVIRONMENT_NAME: "3",
    }
    environment = {**os.environ, **own, **settings}
    process = fork_gpu_dev(("server", "ssh-proxy"), environment, ready.write_end)
    try:
        ready.close_write_end()
        assert ready.read(), "the proxy did not start"
        yield ProxyProcess(port, process)
    finally:
        process.terminate()
        process.wait(DEADLINE_SECONDS)


@contextmanager
def listening_server() -> Iterator[socket.socket]:
    """Where a dev server's SSH port would be."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(DEADLINE_SECONDS)
        yield listener


def accept(listener: socket.socket) -> socket.socket:
    connection, _ = listener.accept()
    connection.settimeout(DEADLINE_SECONDS)
    return connection
