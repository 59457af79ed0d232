"""The API as a process of its own, without a controller behind it: what it writes stays as it was written."""

from __future__ import annotations

import http.client
import json
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gpudev.adapters.local.state import StateFolder
from tests.support.postgres import as_app
from tests.support.zygote import Forked, fork_api

TIMEOUT_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@dataclass(frozen=True, slots=True)
class ApiServer:
    host: str
    port: int
    state: StateFolder
    start_process: Callable[[], Forked]
    processes: list[Forked] = field(default_factory=list)

    def start(self) -> None:
        """Another process on the same socket."""
        self.processes.append(self.start_process())

    def kill(self) -> None:
        """`kill -9`; who comes then waits until another process is started."""
        self.processes[-1].kill()
        self.processes[-1].wait(TIMEOUT_SECONDS)

    def stop(self) -> None:
        for process in self.processes:
            process.terminate()
            process.wait(TIMEOUT_SECONDS)

    @property
    def authority(self) -> str:
        return f"{self.host}:{self.port}"

    def call(
        self, method: str, path: str, body: Any = None, key: str | None = None, **headers: str
    ) -> Answer:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT_SECONDS)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if key:
            sent["Authorization"] = f"Bearer {key}"
        content = None if body is None else json.dumps(body)
        if content is not None:
            sent["Content-Type"] = "application/json"
        try:
            connection.request(method, path, content, sent)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read().decode())
        finally:
            connection.close()

    @contextmanager
    def stream(self, path: str, key: str, **headers: str) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT_SECONDS)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {key}", **sent})
            yield connection.getresponse()
        finally:
            connection.close()


@contextmanager
def running_api(
    dsn: str, state_dir: Path, changes: Mapping[str, str | None] = MappingProxyType({})
) -> Iterator[ApiServer]:
    """A process that serves a socket of ours: a call that comes before it is ready simply waits.

    `changes` are further settings, or None for one to leave out.
    """
    state = StateFolder(state_dir)
    state.prepare()
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        host, port = listener.getsockname()
        settings = {
            "GPU_DEV_DATABASE_URL": as_app(dsn),
            "GPU_DEV_STATE_DIR": str(state_dir),
            "GPU_DEV_FLEET": "test",
            "GPU_DEV_ISOLATION": "none",
            "GPU_DEV_API_PORT": str(port),
            # All tests come from one address, and many of them fail to log in on purpose.
            "GPU_DEV_LOGIN_FAILURES": "10000",
        }

        changed = {**os.environ, **settings, **changes}
        environment = {name: value for name, value in changed.items() if value is not None}

        def start_process() -> Forked:
            return fork_api(environment, listener)

        server = ApiServer(host, port, state, start_process)
        server.start()
        try:
            yield server
        finally:
            server.stop()
