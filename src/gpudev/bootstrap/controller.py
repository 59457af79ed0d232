"""The process that is a controller."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from gpudev.adapters.local.cluster import LocalCluster, LocalClusterConfig
from gpudev.adapters.local.control_plane.readiness import tell_ready
from gpudev.app.controllers.admission import AdmissionController
from gpudev.app.controllers.disks import DiskController, Surroundings
from gpudev.app.controllers.execute import Executor, FaultPoint, no_fault
from gpudev.app.controllers.execute_disk import DiskExecutor
from gpudev.app.controllers.pruning import Pruning
from gpudev.app.controllers.reservations import ReservationController, Rules
from gpudev.app.controllers.run import Controllers, Sources
from gpudev.app.controllers.run_disks import DiskControllers, DiskSources
from gpudev.bootstrap.disks import make_listings, open_volumes
from gpudev.bootstrap.foundation import (
    Stores,
    SystemClock,
    begin,
    choose_isolation,
    claim_database,
    offered_catalogue,
    open_stores,
    read_fleet,
)
from gpudev.bootstrap.reconciliation import make_reconciliation
from gpudev.domain.catalogue import Catalogue
from gpudev.domain.errors import Invalid, StoreUnavailable
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.plans.disk_observation import DiskPolicy
from gpudev.ports.clock import Clock
from gpudev.ports.cluster import Cluster
from gpudev.ports.volumes import Volumes
from gpudev.settings import Settings

_DATABASE_RETRY_SECONDS = 0.02


def run_controller() -> None:
    settings = Settings()
    begin(settings)
    asyncio.run(_serve_controller(settings))


async def _serve_controller(settings: Settings) -> None:
    async with open_stores(settings) as stores:
        await _wait_for_schema(stores)
        await claim_database(settings, stores)
        await stores.gpu_types.sync(offered_catalogue(settings).types)
        async with _open_cluster(settings) as cluster, open_volumes(settings, SystemClock()) as volumes:
            # The cluster's lock makes this the only controller, so no lease can be anybody's.
            await stores.reservations.take_over(SystemClock().now())
            await stores.disks.take_over(SystemClock().now())
            known = await read_known_catalogue(settings, stores)
            controllers, admission = make_controllers(
                settings, stores, Backends(cluster, volumes), known, SystemClock()
            )
            for gpu_type in offered_catalogue(settings).by_name:
                await admission.turn(gpu_type)
            tell_ready(settings.process.ready_fd)
            _on_termination(controllers.stop)
            async with asyncio.TaskGroup() as group:
                pruning = group.create_task(Pruning(stores.leftovers, SystemClock()).run())
                await controllers.run()
                pruning.cancel()


@dataclass(frozen=True, slots=True)
class Backends:
    """Where dev servers run, and where their disks are."""

    cluster: Cluster
    volumes: Volumes


def make_controllers(
    settings: Settings, stores: Stores, backends: Backends, known: Catalogue, clock: Clock
) -> tuple[Controllers, AdmissionController]:
    cluster = backends.cluster
    policy = TimePolicy(grace=settings.time.grace, start_limit=settings.time.start_limit)
    rules = Rules(known, policy)
    fault_point = make_fault_point(settings.process.fault_file)
    executor = Executor(stores.reservations, stores.operations, cluster, clock, fault_point)
    admission = AdmissionController(
        stores.admissions, stores.gpu_types, cluster, rules, clock, settings.process.hostname
    )
    offered = tuple(offered_catalogue(settings).by_name)
    sources = Sources(stores.reservations, stores.admissions, stores.signals, cluster, clock, offered)
    reservations = ReservationController(stores.queue, executor, rules, stores.disks)
    disks = make_disk_controller(settings, stores, backends, clock)
    is_alone = settings.local.state_dir is not None
    disk_controllers = DiskControllers(
        disks,
        DiskSources(stores.disks, stores.signals, clock),
        make_reconciliation(settings, stores, backends.volumes) if is_alone else None,
    )
    return Controllers(reservations, admission, sources, disk_controllers), admission


def make_disk_controller(
    settings: Settings, stores: Stores, backends: Backends, clock: Clock
) -> DiskController:
    fault_point = make_fault_point(settings.process.fault_file)
    executor = DiskExecutor(stores.disks, backends.volumes, make_listings(settings), fault_point)
    around = Surroundings(stores.reservations, backends.cluster, clock, DiskPolicy())
    return DiskController(stores.disk_queue, executor, around)


async def read_known_catalogue(settings: Settings, stores: Stores) -> Catalogue:
    """What is on offer, and what ever was: reservations of a retired type run on to their end."""
    offered = offered_catalogue(settings)
    retired = (kept for kept in await stores.gpu_types.list_all() if not offered.find(kept.name))
    return Catalogue((*offered.types, *retired))


@asynccontextmanager
async def _open_cluster(settings: Settings) -> AsyncIterator[Cluster]:
    if settings.local.state_dir is None:
        raise Invalid(
            "No cluster is configured.",
            hint="Run gpu-dev on this machine with: gpu-dev up",
            code="no_cluster",
        )
    paths = tuple(path for path in settings.local.read_only_paths.split(":") if path)
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


def make_fault_point(file: Path | None) -> FaultPoint:
    """For tests of crash safety: die at the point that the file names, once, as if by `kill -9`."""
    if file is None:
        return no_fault

    def fault_point(point: str) -> None:
        if file.exists() and file.read_text(encoding="utf-8").strip() == point:
            file.unlink()
            os.kill(os.getpid(), signal.SIGKILL)

    return fault_point


def _on_termination(stop: Callable[[], None]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
