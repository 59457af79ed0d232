"""The server graph: settings to adapters to application, for a process that is the API or a controller."""

from __future__ import annotations

import asyncio
import os
import pwd
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import structlog
import uvicorn
from prometheus_client import CollectorRegistry, multiprocess, start_http_server

from gpudev.adapters.local.cluster import LocalCluster, LocalClusterConfig
from gpudev.adapters.local.fleet import Fleet, default_fleet_choice, load_fleet
from gpudev.adapters.local.isolation import Isolation, probe_isolation
from gpudev.adapters.local.linux import die_with_parent
from gpudev.adapters.local.readiness import tell_ready
from gpudev.adapters.local.state import StateFolder
from gpudev.adapters.postgres.admissions import PostgresAdmissions
from gpudev.adapters.postgres.gpu_types import PostgresGpuTypes
from gpudev.adapters.postgres.health import PostgresHealth
from gpudev.adapters.postgres.migrate import migrate
from gpudev.adapters.postgres.operations import PostgresOperations
from gpudev.adapters.postgres.pgmq import PgmqQueue
from gpudev.adapters.postgres.pool import Database, connect
from gpudev.adapters.postgres.reservations import PostgresReservations
from gpudev.adapters.postgres.signals import PostgresSignals
from gpudev.adapters.postgres.users import PostgresUsers
from gpudev.api.service import make_service
from gpudev.app.application import Application
from gpudev.app.cancel import Cancel
from gpudev.app.controllers.admission import AdmissionController
from gpudev.app.controllers.execute import Executor, FaultPoint, no_fault
from gpudev.app.controllers.reservations import ReservationController, Rules
from gpudev.app.controllers.run import Controllers, Sources
from gpudev.app.find import Find
from gpudev.app.follow import EventHub, Follow
from gpudev.app.login import Authenticate, IssueKey, LocalLogin
from gpudev.app.reserve import Reserve
from gpudev.domain.catalogue import DEFAULT_CATALOGUE, Catalogue
from gpudev.domain.errors import Invalid, StoreUnavailable
from gpudev.domain.expiry import TimePolicy
from gpudev.ports.cluster import Cluster
from gpudev.settings import Settings
from gpudev.telemetry import configure_logging

_log = structlog.get_logger(__name__)

_DATABASE_RETRY_SECONDS = 0.05


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Stores:
    """The PostgreSQL side of every port."""

    database: Database
    reservations: PostgresReservations
    operations: PostgresOperations
    admissions: PostgresAdmissions
    gpu_types: PostgresGpuTypes
    users: PostgresUsers
    queue: PgmqQueue
    signals: PostgresSignals
    health: PostgresHealth

    @classmethod
    def on(cls, database: Database) -> Stores:
        return cls(
            database=database,
            reservations=PostgresReservations(database),
            operations=PostgresOperations(database),
            admissions=PostgresAdmissions(database),
            gpu_types=PostgresGpuTypes(database),
            users=PostgresUsers(database),
            queue=PgmqQueue(database),
            signals=PostgresSignals(database.dsn),
            health=PostgresHealth(database),
        )


def run_api(settings: Settings) -> None:
    _begin(settings)
    asyncio.run(_serve_api(settings))


def run_controller(settings: Settings) -> None:
    _begin(settings)
    asyncio.run(_serve_controller(settings))


def run_migrations(settings: Settings) -> tuple[str, ...]:
    return asyncio.run(prepare_database(settings))


async def prepare_database(settings: Settings) -> tuple[str, ...]:
    """Bring the schema up to date and the GPU types in line with what is on offer."""
    connection = await connect(settings.database.dsn)
    try:
        applied = await migrate(connection)
    finally:
        await connection.close()
    async with open_stores(settings) as stores:
        await stores.gpu_types.sync(offered_catalogue(settings).types)
    return applied


@asynccontextmanager
async def open_stores(settings: Settings) -> AsyncIterator[Stores]:
    database = Database(settings.database.dsn, max_connections=settings.database.max_connections)
    await database.open()
    try:
        yield Stores.on(database)
    finally:
        await database.close()


def read_fleet(settings: Settings) -> Fleet:
    return load_fleet(settings.local.fleet or default_fleet_choice())


def offered_catalogue(settings: Settings) -> Catalogue:
    """What can be reserved: the types of the fleet on one machine, the whole table elsewhere."""
    if settings.local.state_dir is None:
        return DEFAULT_CATALOGUE
    return read_fleet(settings).catalogue(DEFAULT_CATALOGUE)


def choose_isolation(settings: Settings) -> Isolation:
    return Isolation(settings.local.isolation) if settings.local.isolation else probe_isolation()


async def _serve_api(settings: Settings) -> None:
    async with open_stores(settings) as stores:
        service = make_service(make_application(settings, stores))
        listener = _listen(settings)
        _serve_metrics(settings)
        config = uvicorn.Config(
            service, log_config=None, access_log=False, timeout_graceful_shutdown=2, lifespan="on"
        )
        server = uvicorn.Server(config)
        # The socket listens already, so a request that comes now waits for the server and is not refused.
        tell_ready(settings.process.ready_fd)
        await server.serve(sockets=[listener])


def make_application(settings: Settings, stores: Stores) -> Application:
    clock = SystemClock()
    catalogue = offered_catalogue(settings)
    hub = EventHub(stores.signals)
    return Application(
        reserve=Reserve(stores.reservations, catalogue, clock),
        find=Find(stores.reservations),
        cancel=Cancel(stores.operations, clock),
        follow=Follow(stores.reservations, hub),
        authenticate=Authenticate(stores.users, clock),
        local_login=_make_local_login(settings, stores, clock),
        hub=hub,
        reservations=stores.reservations,
        operations=stores.operations,
        gpu_types=stores.gpu_types,
        health=stores.health,
        queue=stores.queue,
        catalogue=catalogue,
        clock=clock,
        notices=_make_notices(settings),
    )


def _make_local_login(settings: Settings, stores: Stores, clock: SystemClock) -> LocalLogin | None:
    if settings.local.state_dir is None:
        return None
    return LocalLogin(
        users=stores.users,
        issue_key=IssueKey(stores.users, clock, settings.api.key_ttl_hours),
        clock=clock,
        secret=StateFolder(settings.local.state_dir).read_login_secret(),
        owner=pwd.getpwuid(os.getuid()).pw_name,
        hosts=frozenset(f"{host}:{settings.api.port}" for host in (settings.api.host, "localhost")),
    )


def _make_notices(settings: Settings) -> tuple[str, ...]:
    if settings.local.state_dir is None:
        return ()
    fleet = read_fleet(settings)
    simulated = all(node.is_simulated for node in fleet.nodes)
    notice = "The GPUs are simulated: they can be reserved and counted, not computed on."
    return (*([notice] if simulated else []), choose_isolation(settings).sentence)


async def _serve_controller(settings: Settings) -> None:
    async with open_stores(settings) as stores:
        await _wait_for_schema(stores)
        async with _open_cluster(settings) as cluster:
            # The cluster's lock makes this the only controller, so no lease can be anybody's.
            await stores.reservations.break_leases()
            controllers, admission = make_controllers(settings, stores, cluster)
            for gpu_type in offered_catalogue(settings).by_name:
                await admission.turn(gpu_type)
            tell_ready(settings.process.ready_fd)
            _on_termination(controllers.stop)
            await controllers.run()


def make_controllers(
    settings: Settings, stores: Stores, cluster: Cluster
) -> tuple[Controllers, AdmissionController]:
    clock = SystemClock()
    policy = TimePolicy(grace=settings.time.grace, start_limit=settings.time.start_limit)
    rules = Rules(_known_catalogue(settings), policy)
    fault_point = make_fault_point(settings.process.fault_point)
    executor = Executor(stores.reservations, stores.operations, cluster, clock, fault_point)
    admission = AdmissionController(
        stores.admissions, stores.gpu_types, cluster, rules, clock, settings.process.hostname
    )
    sources = Sources(stores.reservations, stores.admissions, stores.signals, cluster, clock)
    reservations = ReservationController(stores.queue, executor, rules)
    return Controllers(reservations, admission, sources), admission


def _known_catalogue(settings: Settings) -> Catalogue:
    """What is on offer, and what was: reservations of a retired type run on to their end."""
    offered = offered_catalogue(settings)
    retired = (gpu_type for gpu_type in DEFAULT_CATALOGUE.types if not offered.find(gpu_type.name))
    return Catalogue((*offered.types, *retired))


@asynccontextmanager
async def _open_cluster(settings: Settings) -> AsyncIterator[Cluster]:
    if settings.local.state_dir is None:
        raise Invalid(
            "No cluster is configured.",
            hint="Run gpu-dev on this machine with: gpu-dev up",
            code="no_cluster",
        )
    paths = tuple(Path(path) for path in settings.local.read_only_paths.split(":") if path)
    config = LocalClusterConfig(
        state_dir=settings.local.state_dir,
        fleet=read_fleet(settings),
        isolation=choose_isolation(settings),
        read_only_paths=paths,
    )
    async with LocalCluster(config) as cluster:
        yield cluster


async def _wait_for_schema(stores: Stores) -> None:
    """The database may be starting or migrating; there is nothing to do before it is ready."""
    while True:
        try:
            await stores.health.check()
        except StoreUnavailable:
            await asyncio.sleep(_DATABASE_RETRY_SECONDS)
        else:
            return


def make_fault_point(name: str) -> FaultPoint:
    """For tests of crash safety: die at the named point, as if by `kill -9`."""
    if not name:
        return no_fault

    def fault_point(point: str) -> None:
        if point == name:
            os.kill(os.getpid(), signal.SIGKILL)

    return fault_point


def _begin(settings: Settings) -> None:
    configure_logging(settings.process.log_level)
    if settings.process.parent_pid:
        die_with_parent(signal.SIGTERM)
        if os.getppid() != settings.process.parent_pid:
            raise SystemExit("The process that started this one has ended.")


def _listen(settings: Settings) -> socket.socket:
    if settings.api.socket_fd >= 0:
        return socket.socket(fileno=settings.api.socket_fd)
    return socket.create_server((settings.api.host, settings.api.port), backlog=2048)


def _serve_metrics(settings: Settings) -> None:
    """The metrics of every process that shares the folder, whichever of them is asked."""
    if settings.api.metrics_port:
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # it has no types
        start_http_server(settings.api.metrics_port, settings.api.host, registry)


def _on_termination(stop: Callable[[], None]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
