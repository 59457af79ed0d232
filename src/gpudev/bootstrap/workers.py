"""Several processes of the API on one socket, kept running by a parent that serves the metrics alone.

The parent holds the listening sockets, so a connection that comes while a worker is started again waits for
it or goes to another. The workers share nothing but the database and the folder of their metrics.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from gpudev.adapters.local.supervisor import Program, Supervisor, tell_ready
from gpudev.bootstrap.interruption import interrupted
from gpudev.bootstrap.listeners import Listeners
from gpudev.bootstrap.metrics import forget_process, serve_metrics
from gpudev.settings import Settings

_MEMORY = Path("/dev/shm")  # noqa: S108 - the folder made there is private


async def run_workers(settings: Settings, listeners: Listeners) -> None:
    """Serve until interrupted. Ready once every worker is."""
    stop = interrupted()
    with _metrics_folder(settings.api.metrics_dir) as folder:
        workers = [
            Supervisor(program, bury=partial(forget_process, folder=folder))
            for program in _make_programs(settings.api.workers, listeners, folder)
        ]
        try:
            await _serve(settings, workers, stop, folder)
        finally:
            await asyncio.gather(*(worker.stop() for worker in workers))


async def _serve(settings: Settings, workers: list[Supervisor], stop: asyncio.Event, folder: Path) -> None:
    async with asyncio.TaskGroup() as group:
        work = group.create_task(_start_and_keep_running(settings, workers, folder))
        await stop.wait()
        work.cancel()


async def _start_and_keep_running(settings: Settings, workers: list[Supervisor], folder: Path) -> None:
    await asyncio.gather(*(worker.start() for worker in workers))
    serve_metrics(settings.api, folder)
    tell_ready(settings.process.ready_fd)
    await asyncio.gather(*(worker.keep_running() for worker in workers))


def _make_programs(count: int, listeners: Listeners, folder: Path) -> Iterator[Program]:
    host, port = listeners.network.getsockname()[:2]
    environment = {
        "GPU_DEV_API_WORKERS": "1",
        "GPU_DEV_API_HOST": host,
        "GPU_DEV_API_PORT": str(port),
        "GPU_DEV_API_FD": str(listeners.network.fileno()),
        "GPU_DEV_API_UNIX_FD": str(listeners.local.fileno()) if listeners.local else "-1",
        "GPU_DEV_METRICS_PORT": "0",
        "PROMETHEUS_MULTIPROC_DIR": str(folder),
    }
    argv = [sys.executable, "-P", "-m", "gpudev.cli.main", "server", "api"]
    for number in range(1, count + 1):
        yield Program(
            f"API worker {number}", argv, environment=environment, descriptors=listeners.descriptors
        )


@contextmanager
def _metrics_folder(chosen: Path | None) -> Iterator[Path]:
    """The operator's, or one of our own, in memory where that is possible."""
    if chosen is not None:
        yield chosen
        return
    parent = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with TemporaryDirectory(prefix="gpu-dev-metrics-", dir=parent) as folder:
        yield Path(folder)
