"""Silent connections and long bodies without a key, while `/health` goes on answering."""

from __future__ import annotations

import resource
import socket
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.soak.memory import read_memory_mb
from tests.support.api_server import ApiServer, running_api

pytestmark = pytest.mark.soak

OPEN_FILES = 1024
SILENT = 1300
BODIES = 10
BODY_BYTES = 30_000_000
SECONDS = 30.0
MOST_P99_MS = 100.0
MOST_GROWTH_MB = 100.0


@pytest.fixture
def server(module_database: str, tmp_path: Path) -> Iterator[ApiServer]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, hard))
    with running_api(module_database, tmp_path) as running:
        assert running.call("GET", "/health").status == 200
        # This process needs more than the server is started with.
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * SILENT), hard))
        yield running


def send_body(server: ApiServer) -> None:
    head = f"POST /v1/jobs/submit HTTP/1.1\r\nHost: h\r\nContent-Length: {BODY_BYTES}\r\n\r\n".encode()
    with socket.create_connection((server.host, server.port), 30) as connection:
        try:
            connection.sendall(head + b" " * BODY_BYTES)
        except OSError:
            return  # It was rejected before it was read, which is the point.


def test_health_answers_while_connections_and_bodies_are_held(server: ApiServer) -> None:
    pid = server.processes[-1].pid
    before, most, times = read_memory_mb(pid), 0.0, []
    with ExitStack() as held:
        for _ in range(SILENT):
            held.enter_context(socket.create_connection((server.host, server.port), 10))
        senders = [threading.Thread(target=send_body, args=(server,)) for _ in range(BODIES)]
        for sender in senders:
            sender.start()
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            begun = time.perf_counter()
            assert server.call("GET", "/health").status == 200
            times.append((time.perf_counter() - begun) * 1000)
            most = max(most, read_memory_mb(pid))
        for sender in senders:
            sender.join()
    p99 = statistics.quantiles(times, n=100)[98]
    sys.stdout.write(
        f"/health: {len(times)} answers, p99 {p99:.1f} ms; memory {before:.0f} MB, at most {most:.0f} MB\n"
    )
    assert p99 < MOST_P99_MS
    assert most - before < MOST_GROWTH_MB
