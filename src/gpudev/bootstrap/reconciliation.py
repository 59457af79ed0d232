"""Reconciliation of disks: once, as a CronJob runs it, or again and again on one machine."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict

from gpudev.app.reconcile_disks import ReconcileDisks
from gpudev.bootstrap.disks import read_volumes
from gpudev.bootstrap.foundation import Stores, SystemClock, begin, open_stores
from gpudev.ports.volumes import Volumes
from gpudev.settings import Settings


def run_availability() -> str:
    """Reconcile once; the statistics as a line of JSON."""
    settings = Settings()
    begin(settings)
    return asyncio.run(_reconcile_once(settings))


def make_reconciliation(settings: Settings, stores: Stores, volumes: Volumes) -> ReconcileDisks:
    return ReconcileDisks(stores.disk_ledger, volumes, SystemClock(), settings.process.hostname)


async def _reconcile_once(settings: Settings) -> str:
    async with open_stores(settings) as stores:
        done = await make_reconciliation(settings, stores, read_volumes(settings, SystemClock()))()
    if done is None:
        return json.dumps({"skipped": "another reconciliation is under way"})
    return json.dumps({**asdict(done.statistics), "remarks": list(done.remarks)})
