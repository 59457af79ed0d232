"""The control plane of one machine: PostgreSQL, the API and a controller as children of one process.

Each may be killed at any time and is started again. If this process is killed they end with it, and the
next one goes on where it was; the dev servers run on through all of that.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from gpudev.adapters.local.cgroups import describe_cgroups, open_cgroups
from gpudev.adapters.local.database.embedded_postgres import EmbeddedPostgres
from gpudev.adapters.local.fleet import Fleet, default_fleet_choice, load_fleet
from gpudev.adapters.local.state import StateFolder, make_metrics_folder, remove_metrics_folder
from gpudev.adapters.local.supervisor import Program, Supervisor, tell_ready
from gpudev.bootstrap.access import read_admins
from gpudev.bootstrap.foundation import (
    claim_database,
    open_stores,
    prepare_database,
    uses_kubernetes,
)
from gpudev.bootstrap.interruption import interrupted
from gpudev.bootstrap.listeners import Listeners
from gpudev.bootstrap.metrics import forget_process
from gpudev.bootstrap.sandbox import find_sandboxing, read_sandboxing
from gpudev.bootstrap.up import Ready, UpOptions
from gpudev.domain.audit import SERVER_ITSELF, AuditAction, AuditEntry
from gpudev.domain.errors import Conflict
from gpudev.settings import Settings

_METRICS_PORT_OFFSET = 1000


async def run_control_plane(
    options: UpOptions, settings: Settings, state: StateFolder, announce: Callable[[Ready], None]
) -> None:
    """Run until interrupted; `announce` is called once everything answers."""
    read_admins(settings)
    state.prepare()
    with (
        state.locked(),
        _bind(options.port, state, settings.api.host) as listener,
        state.listening() as local,
    ):
        postgres = None if settings.database.url else EmbeddedPostgres(state.postgres)
        completed, remedy = _complete_sandboxing(_complete(settings, options, state, postgres))
        limits = _describe_limits(completed)
        plane = ControlPlane(completed, state, Listeners(listener, local), postgres)
        state.note_running(plane.api_url)
        try:
            taken_port = _find_taken_port(options.port, listener)
            ready = replace(await plane.start(), taken_port=taken_port, remedy=remedy, limits=limits)
            announce(ready)
            tell_ready(settings.process.ready_fd, json.dumps(asdict(ready)))
            await plane.keep_running()
        finally:
            await plane.stop()
            state.forget_running()


class ControlPlane:
    """The processes, and what they are told."""

    def __init__(
        self,
        settings: Settings,
        state: StateFolder,
        listeners: Listeners,
        postgres: EmbeddedPostgres | None,
    ) -> None:
        self._settings = settings
        self._state = state
        self._postgres = postgres
        self._host, self._port = listeners.network.getsockname()[:2]
        self._metrics_port = settings.api.metrics_port or _choose_port(
            self._host, self._port + _METRICS_PORT_OFFSET
        )
        metrics = make_metrics_folder(state.path)
        environment = self._environment(listeners, metrics)
        bury = partial(forget_process, folder=metrics)
        self._controller = Supervisor(_program("controller", state, environment), bury)
        self._api = Supervisor(_program("api", state, environment, *listeners.descriptors), bury)
        proxy = Supervisor(_program("ssh-proxy", state, environment), bury)
        self._ssh_proxy = proxy if settings.ssh_proxy.port else None

    @property
    def api_url(self) -> str:
        return f"http://{self._host}:{self._port}"

    async def start(self) -> Ready:
        """All at once: the API and the controller bear a database that is not there yet."""
        proxies = [self._ssh_proxy.start()] if self._ssh_proxy else []
        await _all_of(self._controller.start(), self._api.start(), self._start_database(), *proxies)
        return Ready(
            api_url=self.api_url,
            metrics_url=f"http://{self._host}:{self._metrics_port}/metrics",
            state_dir=str(self._state.path),
            login_file=str(self._state.login_file),
            socket_file=str(self._state.api_socket),
            fleet=self._describe_fleet(),
            isolation=self._describe_isolation(),
        )

    def _describe_fleet(self) -> str:
        if uses_kubernetes(self._settings):
            return f"the nodes of Kubernetes, namespace {self._settings.kubernetes.namespace}"
        return _describe(load_fleet(self._settings.local.fleet))

    def _describe_isolation(self) -> str:
        if uses_kubernetes(self._settings):
            return "Each dev server is a pod of its own."
        return read_sandboxing(self._settings.local).sentence

    async def keep_running(self) -> None:
        """Until interrupted. That something cannot be kept running at all ends everything, with its words."""
        async with asyncio.TaskGroup() as group:
            upkeep = [self._controller.keep_running(), self._api.keep_running()]
            upkeep += [self._ssh_proxy.keep_running()] if self._ssh_proxy else []
            upkeep += [self._postgres.supervise()] if self._postgres else []
            tasks = [group.create_task(keeping) for keeping in upkeep]
            await interrupted().wait()
            for task in tasks:
                task.cancel()

    async def stop(self) -> None:
        if self._ssh_proxy:
            await self._ssh_proxy.stop()
        await self._api.stop()
        await self._controller.stop()
        if self._postgres:
            await self._postgres.stop()
        remove_metrics_folder(self._state.path)

    async def _start_database(self) -> None:
        if self._postgres:
            await self._postgres.start()
        await prepare_database(self._settings)
        async with open_stores(self._settings) as stores:
            await claim_database(self._settings, stores)
            # While nothing ran, another program may have listened on our port and been sent a key.
            await stores.users.revoke_keys(
                AuditEntry(SERVER_ITSELF, AuditAction.KEY_REVOKED, detail="All keys, at the start.")
            )

    def _environment(self, listeners: Listeners, metrics: Path) -> dict[str, str]:
        return {
            "GPU_DEV_DATABASE_URL": self._settings.database.url,
            # Nobody but this process migrates.
            "GPU_DEV_DATABASE_OWNER_URL": "",
            "GPU_DEV_STATE_DIR": str(self._state.path),
            "GPU_DEV_FLEET": self._settings.local.fleet,
            "GPU_DEV_ISOLATION": self._settings.local.isolation,
            "GPU_DEV_ISOLATION_NOTE": self._settings.local.isolation_note,
            "GPU_DEV_BUBBLEWRAP": self._settings.local.bubblewrap,
            "GPU_DEV_CLUSTER": self._settings.cluster.kind,
            "GPU_DEV_API_HOST": self._host,
            "GPU_DEV_API_PORT": str(self._port),
            "GPU_DEV_API_FD": str(listeners.network.fileno()),
            "GPU_DEV_API_UNIX_FD": str(listeners.local.fileno()) if listeners.local else "-1",
            "GPU_DEV_METRICS_PORT": str(self._metrics_port),
            "GPU_DEV_SSH_PROXY_URL": self._settings.ssh_proxy.public_url,
            "PROMETHEUS_MULTIPROC_DIR": str(metrics),
        }


def _complete(
    settings: Settings, options: UpOptions, state: StateFolder, postgres: EmbeddedPostgres | None
) -> Settings:
    """Settle what the environment left open: the cluster, the fleet and the database."""
    database = settings.database
    if postgres:
        database = database.model_copy(update={"url": postgres.app_dsn, "owner_url": postgres.dsn})
    cluster = settings.cluster.model_copy(update={"kind": options.cluster or settings.cluster.kind})
    settings = replace(settings, database=database, cluster=cluster)
    if uses_kubernetes(settings):
        # Late, as in `clusters`. What is wrong with it is told before anything is started.
        from gpudev.adapters.kubernetes.kubeconfig import read_kubeconfig  # noqa: PLC0415 - see above

        read_kubeconfig(settings.kubernetes.kubeconfig)
        return replace(settings, local=settings.local.model_copy(update={"state_dir": state.path}))
    fleet = _absolute(options.fleet or settings.local.fleet or default_fleet_choice())
    load_fleet(fleet)
    local = settings.local.model_copy(update={"state_dir": state.path, "fleet": fleet})
    return replace(settings, local=local)


def _complete_sandboxing(settings: Settings) -> tuple[Settings, str]:
    """Settle how dev servers are kept apart; and lines for the user to copy, where they would help."""
    if uses_kubernetes(settings):
        return settings, ""
    found = find_sandboxing(settings.local)
    update = {
        "isolation": found.isolation.value,
        "isolation_note": found.remedy.sentence if found.remedy else "",
        "bubblewrap": found.program,
    }
    local = settings.local.model_copy(update=update)
    return replace(settings, local=local), found.remedy.text if found.remedy else ""


def _describe_limits(settings: Settings) -> str:
    """Before any other process is there: a cgroup is divided only while nothing else starts in it."""
    return "" if uses_kubernetes(settings) else describe_cgroups(open_cgroups(settings.local.cgroup))


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
    raise Conflict("port_taken", port=port, words=reason, code="port_taken")


def _find_taken_port(port: int | None, listener: socket.socket) -> int | None:
    """The usual port, if only that another program has it kept us from it."""
    host, bound = listener.getsockname()[:2]
    usual = Settings().api.port
    is_ours = port is not None or bound == usual or _choose_port(host, usual) == usual
    return None if is_ours else usual


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
