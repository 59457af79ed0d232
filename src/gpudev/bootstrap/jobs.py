"""What runs once and ends: the jobs that a deployment starts every few minutes."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass

from gpudev.adapters.absent import AbsentCluster
from gpudev.adapters.aws.scaling import AwsScaling
from gpudev.app.controllers.admission import AdmissionController
from gpudev.app.controllers.once import AvailabilityRefresh, Outcome, RunDue
from gpudev.app.controllers.reservations import ReservationWork, Rules
from gpudev.app.turns.engine import Engine, Hands
from gpudev.bootstrap.controller import make_executor, make_fault_point, read_known_catalogue
from gpudev.bootstrap.disks import reconcile_once
from gpudev.bootstrap.foundation import (
    Stores,
    SystemClock,
    begin,
    make_policy,
    offered_catalogue,
    open_stores,
    read_sharing,
)
from gpudev.settings import Settings


def run_expire() -> dict[str, int]:
    """How many turns were taken, by how they went."""
    settings = Settings()
    begin(settings)
    outcomes = asyncio.run(_expire(settings))
    return {outcome.value: outcomes[outcome] for outcome in Outcome}


@dataclass(frozen=True, slots=True)
class Looked:
    """What the job of availability looked at."""

    gpu_types: tuple[str, ...]
    disks: str
    """What the reconciliation of disks counted, as a line of JSON."""


def run_availability() -> Looked:
    settings = Settings()
    begin(settings)
    return asyncio.run(_look_around(settings))


async def _look_around(settings: Settings) -> Looked:
    """Disks first: they are looked at even where the cloud does not say what machines it keeps for us."""
    async with open_stores(settings) as stores:
        await stores.health.check()
        disks = await reconcile_once(settings, stores)
        return Looked(await _refresh_availability(settings, stores), disks)


async def _refresh_availability(settings: Settings, stores: Stores) -> tuple[str, ...]:
    clock = SystemClock()
    name = settings.process.hostname
    known, sharing = await read_known_catalogue(settings, stores), read_sharing(settings)
    rules = Rules(known, make_policy(settings), sharing=sharing)
    admission = AdmissionController(stores.admissions, stores.nodes, AbsentCluster(), rules, clock, name)
    offered = tuple(offered_catalogue(settings).by_name)
    scaling = _make_scaling(settings)
    return await AvailabilityRefresh(stores.nodes, scaling, admission, clock, offered, name).run()


def _make_scaling(settings: Settings) -> AwsScaling | None:
    endpoint = settings.aws.autoscaling_endpoint
    if settings.local.state_dir is not None and not endpoint:
        return None
    return AwsScaling(settings.aws.region, endpoint)


async def _expire(settings: Settings) -> Counter[Outcome]:
    """The cluster is the controller's: what the clock alone decides is recorded, the rest is left to it."""
    clock = SystemClock()
    async with open_stores(settings) as stores:
        await stores.health.check()
        rules = Rules(await read_known_catalogue(settings, stores), make_policy(settings))
        work = ReservationWork(make_executor(stores, AbsentCluster(), clock), rules, stores.disks)
        engine = Engine(
            work,
            Hands(
                stores.turns,
                stores.messages.of_reservations,
                clock,
                make_fault_point(settings.process.fault_file),
            ),
        )
        return await RunDue(stores.turns, engine, clock).run()
