"""The control plane of one machine: PostgreSQL, the API and a controller as children of one process.

Each may be killed at any time and is started again. If this process is killed they end with it, and the
next one goes on where it was; the dev servers run on through all of that.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from gpudev.adapters.local.embedded_postgres import EmbeddedPostgres
from gpudev.adapters.local.fleet import Fleet, default_fleet_choice, load_fleet
from gpudev.adapters.local.isolation import Isolation
from gpudev.adapters.local.readiness import tell_ready
from gpudev.adapters.local.state import StateFolder
from gpudev.adapters.local.supervisor import Program, Supervisor
from gpudev.bootstrap.foundation import choose_isolation, prepare_database
from gpudev.domain.errors import Conflict
from gpudev.settings import Settings

_METRICS_PORT_OFFSET = 1000


@dataclass(frozen=True, slots=True)
class UpOptions:
    port: int | None = None
    fleet: str = ""


@dataclass(frozen=True, slots=True)
class Ready:
    """What there is to say once everything answers."""

    api_url: str
    metrics_url: str
    state_dir: str
    login_file: str
    fleet: str
    """The nodes in words, simulated ones called so."""
    isolation: str


async def run_control_plane(
    options: UpOptions, settings: Settings, state: StateFolder, announce: Callable[[Ready], None]
) -> None:
    """Run until interrupted; `announce` is called once everything answers."""
    state.prepare()
    lock = state.lock()
    try:
        async with AsyncExitStack() as stack:
            listener = _bind(options.port, state, settings.api.host)
            stack.callback(listener.close)
            postgres = None if settings.database.url else EmbeddedPostgres(state.postgres)
            settings = _complete(settings, options, state, postgres)
            ready = await _start_everything(settings, state, listener, postgres, stack)
            state.note_running(ready.api_url)
            stack.callback(state.forget_running)
            announce(ready)
            tell_ready(settings.process.ready_fd, json.dumps(asdict(ready)))
            await _interrupted()
    finally:
        os.close(lock)


def _complete(
    settings: Settings, options: UpOptions, state: StateFolder, postgres: EmbeddedPostgres | None
) -> Settings:
    """Settle what the environment left open: the fleet, the isolation and the database."""
    fleet = _absolute(options.fleet or settings.local.fleet or default_fleet_choice())
    load_fleet(fleet)
    isolation = choose_isolation(settings).value
    local = settings.local.model_copy(
        update={"state_dir": state.path, "fleet": fleet, "isolation": isolation}
    )
    database = settings.database.model_copy(update={"url": postgres.dsn}) if postgres else settings.database
    return replace(settings, local=local, database=database)


async def _start_everything(
    settings: Settings,
    state: StateFolder,
    listener: socket.socket,
    postgres: EmbeddedPostgres | None,
    stack: AsyncExitStack,
) -> Ready:
    """All at once: the API and the controller bear a database that is not there yet."""
    metrics_port = _prepare_metrics(settings, state, listener)
    environment = _environment(settings, state, listener, metrics_port)
    controller = Supervisor(_program("controller", state, environment))
    api = Supervisor(_program("api", state, environment, listener.fileno()))
    starts = [controller.start(), api.start(), _start_database(settings, postgres)]
    if postgres:
        stack.push_async_callback(postgres.stop)
    for supervisor in (controller, api):
        stack.push_async_callback(supervisor.stop)
    await _all_of(*starts)
    keep_running = [
        controller.keep_running(),
        api.keep_running(),
        *([postgres.supervise()] if postgres else []),
    ]
    for keeping in keep_running:
        stack.callback(asyncio.create_task(keeping).cancel)
    return _describe_ready(settings, state, listener, metrics_port)


async def _start_database(settings: Settings, postgres: EmbeddedPostgres | None) -> None:
    if postgres:
        await postgres.start()
    await prepare_database(settings)


async def _all_of(*starts: Coroutine[None, None, None]) -> None:
    """Wait for all; the first failure is raised as it is, and the others are given up."""
    tasks = [asyncio.create_task(start) for start in starts]
    try:
        for done in asyncio.as_completed(tasks):
            await done
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _prepare_metrics(settings: Settings, state: StateFolder, listener: socket.socket) -> int:
    """An empty folder that the processes share, and a port to read it at."""
    shutil.rmtree(state.metrics, ignore_errors=True)
    state.metrics.mkdir(mode=0o700)
    host, port = listener.getsockname()[:2]
    return settings.api.metrics_port or _choose_port(host, port + _METRICS_PORT_OFFSET)


def _environment(
    settings: Settings, state: StateFolder, listener: socket.socket, metrics_port: int
) -> dict[str, str]:
    host, port = listener.getsockname()[:2]
    return {
        "GPU_DEV_DATABASE_URL": settings.database.url,
        "GPU_DEV_STATE_DIR": str(state.path),
        "GPU_DEV_FLEET": settings.local.fleet,
        "GPU_DEV_ISOLATION": settings.local.isolation,
        "GPU_DEV_API_HOST": host,
        "GPU_DEV_API_PORT": str(port),
        "GPU_DEV_API_FD": str(listener.fileno()),
        "GPU_DEV_METRICS_PORT": str(metrics_port),
        "PROMETHEUS_MULTIPROC_DIR": str(state.metrics),
    }


def _describe_ready(
    settings: Settings, state: StateFolder, listener: socket.socket, metrics_port: int
) -> Ready:
    host, port = listener.getsockname()[:2]
    return Ready(
        api_url=f"http://{host}:{port}",
        metrics_url=f"http://{host}:{metrics_port}/metrics",
        state_dir=str(state.path),
        login_file=str(state.login_file),
        fleet=_describe(load_fleet(settings.local.fleet)),
        isolation=Isolation(settings.local.isolation).sentence,
    )


def _program(part: str, state: StateFolder, environment: Mapping[str, str], *descriptors: int) -> Program:
    argv = [sys.executable, "-P", "-m", "gpudev.cli.main", "server", part]
    return Program(part, argv, state.logs / f"{part}.log", environment, descriptors)


def _bind(port: int | None, state: StateFolder, host: str) -> socket.socket:
    """The port that was asked for; else the one used last, the usual one, or any."""
    note = state.find_note()
    last = int(note.api_url.rpartition(":")[2]) if note else 0
    wanted = [port] if port is not None else [*([last] if last else []), Settings().api.port, 0]
    reason = ""
    for candidate in wanted:
        try:
            return socket.create_server((host, candidate), backlog=2048)
        except OSError as error:
            reason = error.strerror or str(error)
    raise Conflict(
        f"Port {port} cannot be used: {reason}.",
        hint="Choose another with --port, or leave --port out.",
        code="port_taken",
    )


def _choose_port(host: str, wanted: int) -> int:
    for candidate in (wanted, 0):
        try:
            with socket.create_server((host, candidate)) as probe:
                return int(probe.getsockname()[1])
        except (OSError, OverflowError):
            continue
    return 0


def _absolute(fleet: str) -> str:
    return str(Path(fleet).absolute()) if Path(fleet).is_file() else fleet


def _describe(fleet: Fleet) -> str:
    kinds = Counter((node.gpu_type, len(node.gpus), node.is_simulated) for node in fleet.nodes)
    return "; ".join(
        f"{count} node{'' if count == 1 else 's'} of {gpus} {gpu_type}{' (simulated)' if simulated else ''}"
        for (gpu_type, gpus, simulated), count in kinds.items()
    )


async def _interrupted() -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()
