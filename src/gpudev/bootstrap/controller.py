"""The process that is a controller."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import uvloop

from gpudev.adapters.local.supervisor import tell_ready
from gpudev.adapters.webhook import WebhookNotifier
from gpudev.app.controllers.admission import AdmissionController
from gpudev.app.controllers.chores import EVERY as PRUNING_EVERY
from gpudev.app.controllers.chores import Pruning, Sampler, SendNotifications, VerifyAudit
from gpudev.app.controllers.disks import DiskExecutor, DiskWork, Surroundings
from gpudev.app.controllers.reservation_executor import ReservationExecutor
from gpudev.app.controllers.reservations import ReservationWork, Rules
from gpudev.app.controllers.run import Controllers, Engines, Sources
from gpudev.app.turns.engine import Engine, FaultPoint, Hands, no_fault
from gpudev.app.turns.loop import Chore, working
from gpudev.bootstrap.clusters import Backends, open_backends
from gpudev.bootstrap.disks import make_listings, make_own_reconciliation, stay_in_zone
from gpudev.bootstrap.foundation import (
    Stores,
    SystemClock,
    begin,
    make_idle_policy,
    make_policy,
    offered_catalogue,
    open_stores,
    read_sharing,
)
from gpudev.bootstrap.metrics import serve_metrics
from gpudev.domain.catalogue import Catalogue
from gpudev.domain.errors import StoreUnavailable
from gpudev.domain.plans.disk_turn import DiskPolicy
from gpudev.domain.readiness import BEAT_EVERY
from gpudev.faults import FAULTS
from gpudev.ports.clock import Clock
from gpudev.ports.cluster import Cluster
from gpudev.settings import Settings

_DATABASE_RETRY_SECONDS = 0.02
_RESERVATIONS_AT_ONCE = 64
"""The end of a dev server is part of a turn: many that one user ends at once must not hold up others."""
_DISKS_AT_ONCE = 8
_RECONCILIATION = timedelta(minutes=5)
_SWITCH_SECONDS = 0.0005


def run_controller() -> None:
    settings = Settings()
    begin(settings)
    # Threads remove trees and measure servers; the event loop must not wait for one of them at each step.
    sys.setswitchinterval(_SWITCH_SECONDS)
    uvloop.run(_serve_controller(settings))


async def _serve_controller(settings: Settings) -> None:
    async with open_stores(settings) as stores:
        await _wait_for_schema(stores)
        await stores.nodes.sync_types(offered_catalogue(settings).types)
        async with open_backends(settings, stores) as backends:
            known = await read_known_catalogue(settings, stores)
            controllers, admission = make_controllers(settings, stores, backends, known, SystemClock())
            for gpu_type in offered_catalogue(settings).by_name:
                await FAULTS.attempt("admission", partial(admission.turn, gpu_type), gpu_type)
            if settings.local.state_dir is None:
                # On one machine the API serves the metrics of all processes.
                serve_metrics(settings.api, settings.api.metrics_dir)
            tell_ready(settings.process.ready_fd)
            _on_termination(controllers.stop)
            async with working(list_chores(settings, stores, backends.cluster), FAULTS):
                await controllers.run()


def list_chores(settings: Settings, stores: Stores, cluster: Cluster) -> tuple[Chore, ...]:
    """What a controller does beside its turns and the hints that wake them."""
    sampler = make_sampler(settings, stores, cluster)
    sending = make_sending(settings, stores)
    pruning = Pruning(stores.retention, SystemClock())
    verifying = VerifyAudit(stores.audit, SystemClock())
    return (
        Chore("sampling", sampler.sample, sampler.every.total_seconds()),
        Chore("notifications", sending.send_all),
        Chore("pruning", pruning.prune, PRUNING_EVERY.total_seconds()),
        Chore("audit", verifying.verify, settings.access.verify_every.total_seconds()),
        Chore("heartbeat", partial(beat, settings, stores), BEAT_EVERY.total_seconds()),
    )


async def beat(settings: Settings, stores: Stores) -> None:
    """Say in the database that this controller works, for `/ready` to read, and what of it does not."""
    await stores.health.beat(settings.process.hostname, FAULTS.list_failing())


def make_controllers(
    settings: Settings, stores: Stores, backends: Backends, known: Catalogue, clock: Clock
) -> tuple[Controllers, AdmissionController]:
    cluster = backends.cluster
    rules = Rules(
        known,
        make_policy(settings),
        make_idle_policy(settings),
        disks_stay=stay_in_zone(settings),
        lease=settings.time.lease,
        sharing=read_sharing(settings),
    )
    admission = AdmissionController(
        stores.admissions, stores.nodes, cluster, rules, clock, settings.process.hostname
    )
    offered = tuple(offered_catalogue(settings).by_name)
    sources = Sources(
        stores.reservations, stores.admissions, stores.messages.signals, cluster, clock, offered
    )
    fault_point = make_fault_point(settings.process.fault_file)
    reservations = ReservationWork(make_executor(stores, cluster, clock), rules, stores.disks)
    disks = make_disk_work(settings, stores, backends, clock)
    engines: Engines = {
        reservations.kind: Engine(
            reservations,
            Hands(stores.turns, stores.messages.of_reservations, clock, fault_point),
            concurrency=_RESERVATIONS_AT_ONCE,
        ),
        disks.kind: Engine(
            disks,
            Hands(stores.turns, stores.messages.of_disks, clock, fault_point),
            concurrency=_DISKS_AT_ONCE,
        ),
    }
    chores = list_disk_chores(settings, stores, backends)
    return Controllers(engines, admission, sources, chores), admission


def make_disk_work(settings: Settings, stores: Stores, backends: Backends, clock: Clock) -> DiskWork:
    executor = DiskExecutor(stores.disks, backends.volumes, make_listings(settings))
    lease = settings.time.lease * 2
    around = Surroundings(stores.reservations, backends.cluster, clock, DiskPolicy(), lease)
    return DiskWork(executor, around)


def list_disk_chores(settings: Settings, stores: Stores, backends: Backends) -> tuple[Chore, ...]:
    """Where no CronJob reconciles disks with the storage, it is done here."""
    reconcile = make_own_reconciliation(settings, stores, backends.volumes)
    every = _RECONCILIATION.total_seconds()
    return (Chore("disk_reconciliation", reconcile.run, every, begins_after=every),) if reconcile else ()


def make_sampler(settings: Settings, stores: Stores, cluster: Cluster) -> Sampler:
    policy = make_idle_policy(settings)
    every = settings.idle.sample_every
    return Sampler(stores.reservations, stores.reports, cluster, policy, SystemClock(), every)


def make_sending(settings: Settings, stores: Stores) -> SendNotifications:
    notifier = WebhookNotifier(settings.notify.hosts, SystemClock())
    return SendNotifications(stores.notifications, notifier)


def make_executor(stores: Stores, cluster: Cluster, clock: Clock) -> ReservationExecutor:
    return ReservationExecutor(
        stores.reservations,
        stores.operations,
        stores.admissions,
        cluster,
        clock,
        stores.disks,
        stores.reservations,
    )


async def read_known_catalogue(settings: Settings, stores: Stores) -> Catalogue:
    """What is on offer, and what ever was: reservations of a retired type run on to their end."""
    offered = offered_catalogue(settings)
    retired = (kept for kept in await stores.nodes.list_types() if not offered.find(kept.name))
    return Catalogue((*offered.types, *retired))


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
