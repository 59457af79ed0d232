"""The one-machine graph: PostgreSQL, the API and a controller as children of one process.

Each may be killed at any time and is started again. If this process is killed they end with it, and the
next `up` goes on where it was; the dev servers run on through all of that.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import signal
import socket
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from gpudev.adapters.local.embedded_postgres import EmbeddedPostgres
from gpudev.adapters.local.fleet import Fleet, default_fleet_choice, load_fleet
from gpudev.adapters.local.identity import holding
from gpudev.adapters.local.isolation import Isolation
from gpudev.adapters.local.readiness import ENVIRONMENT_NAME, ReadyPipe, tell_ready
from gpudev.adapters.local.shutdown import stop_all_servers
from gpudev.adapters.local.state import StateFolder
from gpudev.adapters.local.supervisor import Program, Supervisor
from gpudev.bootstrap.foundation import choose_isolation, prepare_database
from gpudev.domain.errors import Conflict, GpuDevError
from gpudev.settings import Settings

_STOP_SECONDS = 30
_METRICS_PORT_OFFSET = 1000


@dataclass(frozen=True, slots=True)
class UpOptions:
    state_dir: Path | None = None
    port: int | None = None
    fleet: str = ""


@dataclass(frozen=True, slots=True)
class Ready:
    """What there is to say once everything answers."""

    api_url: str
    metrics_url: str
    state_dir: Path
    login_file: Path
    fleet: str
    """The nodes in words, simulated ones called so."""
    isolation: str


def default_state_dir() -> Path:
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    base = os.environ.get("XDG_DATA_HOME") or Path(os.environ.get("HOME") or home) / ".local" / "share"
    return Path(base) / "gpu-dev"


def find_state(options: UpOptions, settings: Settings) -> StateFolder:
    chosen = options.state_dir or settings.local.state_dir or default_state_dir()
    return StateFolder(chosen.absolute())


def run_up(options: UpOptions, announce: Callable[[Ready], None]) -> None:
    """Run until interrupted; `announce` is called once everything answers."""
    settings = Settings()
    asyncio.run(_up(options, settings, announce))


def start_detached(options: UpOptions) -> None:
    """Run `up` as a process of its own, and return once it is ready."""
    settings = Settings()
    state = find_state(options, settings)
    state.prepare()
    if running := state.find_running():
        raise Conflict(
            f"gpu-dev runs already at {running.api_url}.",
            hint="Stop it with: gpu-dev down",
            code="already_running",
        )
    asyncio.run(_start_detached(options, state))


def stop_control_plane(state: StateFolder) -> bool:
    """Ask a running `up` to end and wait until it has; False if none runs."""
    note = state.find_running()
    if note is None:
        return False
    with holding(note.process) as process:
        if process is not None:
            process.send_signal(signal.SIGTERM)
            if not process.wait_blocking(_STOP_SECONDS):
                raise GpuDevError(
                    f"gpu-dev (process {note.process.pid}) did not stop in {_STOP_SECONDS} seconds.",
                    hint=f"Look into {state.logs}.",
                    code="stop_timed_out",
                )
    return True


def stop_servers(state: StateFolder) -> int:
    """End the dev servers that are left; their homes stay. For when no control plane runs."""
    return stop_all_servers(state.path)


async def _up(options: UpOptions, settings: Settings, announce: Callable[[Ready], None]) -> None:
    state = find_state(options, settings)
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
            tell_ready(settings.process.ready_fd)
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
        state_dir=state.path,
        login_file=state.login_file,
        fleet=_describe(load_fleet(settings.local.fleet)),
        isolation=Isolation(settings.local.isolation).sentence,
    )


def _program(part: str, state: StateFolder, environment: Mapping[str, str], *descriptors: int) -> Program:
    argv = [sys.executable, "-P", "-m", "gpudev.cli.main", "server", part]
    return Program(part, argv, state.logs / f"{part}.log", environment, descriptors)


async def _start_detached(options: UpOptions, state: StateFolder) -> None:
    argv = [sys.executable, "-P", "-m", "gpudev.cli.main", "up", "--state-dir", str(state.path)]
    argv += ["--port", str(options.port)] if options.port is not None else []
    argv += ["--fleet", options.fleet] if options.fleet else []
    pipe = ReadyPipe.open()
    log = state.logs / "up.log"
    with log.open("wb") as output:
        await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, ENVIRONMENT_NAME: str(pipe.write_end)},
            pass_fds=(pipe.write_end,),
            start_new_session=True,
        )
    pipe.close_write_end()
    if not await pipe.wait():
        words = log.read_text(encoding="utf-8", errors="replace").strip()
        raise GpuDevError(f"gpu-dev did not start. {words}", hint=f"Logs are in {state.logs}.")


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
