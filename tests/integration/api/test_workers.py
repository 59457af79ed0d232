"""Several workers behind one socket: one address, one set of figures, and none of them is missed."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpudev.adapters.local.supervisor import ENVIRONMENT_NAME, ReadyPipe
from tests.integration.api.conftest import offer_types
from tests.support.api_server import TIMEOUT_SECONDS
from tests.support.machine import wait_for

WORKERS = 2


@dataclass(frozen=True, slots=True)
class Workers:
    """A parent with its workers, and where they answer."""

    parent: subprocess.Popen[bytes]
    port: int
    metrics_port: int

    def pids(self) -> set[int]:
        children = Path(f"/proc/{self.parent.pid}/task/{self.parent.pid}/children").read_text()
        return {int(pid) for pid in children.split()}

    def ask(self) -> int:
        url = f"http://127.0.0.1:{self.port}/health"
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:
            return int(answer.status)

    def count_requests(self, route: str) -> float:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        counts = [line for line in lines if line.startswith("gpu_dev_http_request_seconds_count")]
        return sum(float(line.rpartition(" ")[2]) for line in counts if f'route="{route}"' in line)


@pytest.fixture
def workers(database: str, tmp_path: Path) -> Iterator[Workers]:
    asyncio.run(offer_types(database))
    (port, metrics_port), ready = _free_ports(2), ReadyPipe.open()
    settings = {
        "GPU_DEV_DATABASE_URL": database,
        "GPU_DEV_API_WORKERS": str(WORKERS),
        "GPU_DEV_API_PORT": str(port),
        "GPU_DEV_METRICS_PORT": str(metrics_port),
        "TMPDIR": str(tmp_path),
        ENVIRONMENT_NAME: str(ready.write_end),
    }
    parent = subprocess.Popen(
        [sys.executable, "-m", "gpudev.cli.main", "server", "api"],
        env={**os.environ, **settings},
        pass_fds=(ready.write_end,),
    )
    try:
        ready.close_write_end()
        assert ready.read() == "ready"
        yield Workers(parent, port, metrics_port)
    finally:
        parent.terminate()
        parent.wait(TIMEOUT_SECONDS)


def test_a_killed_worker_is_started_again_and_its_figures_stay(workers: Workers) -> None:
    before = workers.pids()
    assert len(before) == WORKERS
    for _ in range(10):
        assert workers.ask() == 200
    victim = min(before)
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: len(workers.pids() - {victim}) == WORKERS, "a worker in the place of the killed one")
    for _ in range(10):
        assert workers.ask() == 200
    assert workers.count_requests("/health") == 20


def test_a_request_to_stop_ends_all_of_them(workers: Workers) -> None:
    pids = workers.pids()
    workers.parent.send_signal(signal.SIGTERM)
    assert workers.parent.wait(TIMEOUT_SECONDS) == 0
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_workers_end_with_their_parent(workers: Workers) -> None:
    pids = workers.pids()
    workers.parent.kill()
    workers.parent.wait(TIMEOUT_SECONDS)
    wait_for(lambda: not [pid for pid in pids if _runs(pid)], "the end of the workers")


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _free_ports(count: int) -> list[int]:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(listener.getsockname()[1]) for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports
