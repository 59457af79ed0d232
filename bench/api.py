"""How many requests a second the API answers, and how fast, against floors in the very same processes.

In turns, less than a second each: a constant answer, the work of a route in one SQL statement, and the route
itself, so that whatever else the machine does falls on all of them alike.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.api_data import JOBS, KEY, Data, fill
from bench.api_findings import Effort, Findings, introduce, report
from bench.by_hand import make_public_key
from bench.load import Order, run_load
from bench.page import Section
from gpudev.adapters.local.database.embedded_postgres import EmbeddedPostgres
from gpudev.adapters.local.supervisor import ENVIRONMENT_NAME, ReadyPipe

TITLE = "The speed of the API"
COMMAND = "python -m bench api"
WORKERS = (1, 2)
_POLICY = Path(__file__).with_name("policy.toml")


def measure(quick: bool = False) -> Section:  # noqa: FBT001, FBT002 - one switch, the same for every benchmark
    effort = Effort(rounds=2, seconds=0.5) if quick else Effort()
    parts = [introduce(effort, JOBS)]
    with TemporaryDirectory(prefix="gpu-dev-bench-") as folder, running_postgres(Path(folder)) as dsn:
        data = asyncio.run(fill(dsn))
        for workers in WORKERS:
            with running_api(dsn, workers) as address:
                parts.append(report(workers, _measure_workers(address, data, effort)))
    return Section(TITLE, COMMAND, "\n\n".join(parts))


def _measure_workers(address: tuple[str, int], data: Data, effort: Effort) -> Findings:
    found = Findings()
    for subject, order in list(_orders(address, data, effort)):
        _ask(order, subject, data)  # To warm up: connections to the database, prepared statements.
    for _ in range(effort.rounds):
        for subject, order in _orders(address, data, effort):
            found.add(subject, _ask(order, subject, data))
    return found


def _ask(order: Order, subject: str, data: Data) -> tuple[float, list[float]]:
    seen = run_load(order)
    if set(seen.statuses) != {"200"}:
        raise RuntimeError(f"{subject} was answered with {seen.statuses}.")
    if order.method == "POST":
        asyncio.run(data.remove_submitted())
    return seen.elapsed, seen.latencies


def _orders(address: tuple[str, int], data: Data, effort: Effort) -> Iterator[tuple[str, Order]]:
    """What is asked in turns, floors before what stands on them."""
    host, port = address
    job = {"gpu_type": "t4", "gpu_count": 1, "duration_hours": 1.0, "ssh_public_keys": [make_public_key()]}
    asked = {
        "get": ("GET", f"/jobs/{data.job_id}", ""),
        "list": ("GET", "/jobs", ""),
        "availability": ("GET", "/gpu/availability", ""),
        "submit": ("POST", "/jobs/submit", json.dumps(job)),
    }

    def make_order(method: str, path: str, body: str) -> Order:
        headers = {"Authorization": f"Bearer {KEY}"}
        return Order(host, port, method, path, headers, body, effort.connections, effort.seconds)

    yield "constant", make_order("GET", "/floor/constant", "")
    for name, (method, path, body) in asked.items():
        yield f"{name}: one statement", make_order(method, f"/floor{path}", body)
        yield name, make_order(method, f"/v1{path}", body)
    yield "list of one type", make_order("GET", "/v1/jobs?gpu_type=t4", "")


@contextmanager
def running_postgres(folder: Path) -> Iterator[str]:
    server = EmbeddedPostgres(folder / "postgres")
    asyncio.run(server.start())
    try:
        yield server.dsn
    finally:
        asyncio.run(server.stop())


@contextmanager
def running_api(dsn: str, workers: int) -> Iterator[tuple[str, int]]:
    """So many workers on one socket, as `gpu-dev server api` has them, with the floors in each."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=2048))
        for _ in range(workers):
            stack.enter_context(_running_worker(dsn, listener))
        host, port = listener.getsockname()
        yield host, port


@contextmanager
def _running_worker(dsn: str, listener: socket.socket) -> Iterator[None]:
    ready = ReadyPipe.open()
    settings = {
        "GPU_DEV_DATABASE_URL": dsn,
        "GPU_DEV_API_FD": str(listener.fileno()),
        "GPU_DEV_REQUESTS_PER_SECOND": "0",
        "GPU_DEV_SUBMITS_PER_MINUTE": "0",
        "GPU_DEV_POLICY_FILE": str(_POLICY),
        ENVIRONMENT_NAME: str(ready.write_end),
    }
    worker = subprocess.Popen(
        [sys.executable, "-m", "bench.api_floors"],
        env={**os.environ, **settings},
        pass_fds=(listener.fileno(), ready.write_end),
    )
    try:
        ready.close_write_end()
        if not ready.read():
            raise RuntimeError("A worker did not start.")
        yield
    finally:
        worker.terminate()
        worker.wait()
