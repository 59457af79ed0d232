"""Reconciliation of disks: once, as a CronJob runs it, or again and again on one machine."""

from __future__ import annotations

import json
from dataclasses import asdict

from gpudev.app.reconcile_disks import ReconcileDisks
from gpudev.bootstrap.disks import find_state_dir, read_volumes
from gpudev.bootstrap.foundation import Stores, SystemClock
from gpudev.ports.volumes import Volumes
from gpudev.settings import Settings


def make_reconciliation(settings: Settings, stores: Stores, volumes: Volumes) -> ReconcileDisks:
    return ReconcileDisks(stores.disk_ledger, volumes, SystemClock(), settings.process.hostname)


def make_own_reconciliation(settings: Settings, stores: Stores, volumes: Volumes) -> ReconcileDisks | None:
    """For a controller that does it itself, which is on one machine; elsewhere a CronJob does it."""
    return make_reconciliation(settings, stores, volumes) if find_state_dir(settings) else None


async def reconcile_once(settings: Settings, stores: Stores) -> str:
    """The statistics as a line of JSON."""
    done = await make_reconciliation(settings, stores, read_volumes(settings, SystemClock()))()
    if done is None:
        return json.dumps({"skipped": "another reconciliation is under way"})
    return json.dumps({**asdict(done.statistics), "remarks": list(done.remarks)})
