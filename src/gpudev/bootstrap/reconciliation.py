"""Reconciliation of disks: once, as a CronJob runs it, or again and again on one machine."""

from __future__ import annotations

import json
from dataclasses import asdict

from gpudev.app.disk_reconciliation import ReconcileDisks
from gpudev.bootstrap.disks import can_mount, read_volumes
from gpudev.bootstrap.foundation import Stores, SystemClock
from gpudev.ports.volumes import VolumeListings
from gpudev.settings import Settings
from gpudev.texts.sentences import say


def make_reconciliation(settings: Settings, stores: Stores, volumes: VolumeListings) -> ReconcileDisks:
    return ReconcileDisks(stores.disk_ledger, volumes, SystemClock(), settings.process.hostname)


def make_own_reconciliation(
    settings: Settings, stores: Stores, volumes: VolumeListings
) -> ReconcileDisks | None:
    """For a controller that does it itself, which is that of `gpu-dev up`; elsewhere a CronJob does it."""
    is_own = settings.local.state_dir is not None and can_mount(settings)
    return make_reconciliation(settings, stores, volumes) if is_own else None


async def reconcile_once(settings: Settings, stores: Stores) -> str:
    """The statistics as a line of JSON."""
    done = await make_reconciliation(settings, stores, read_volumes(settings, SystemClock()))()
    if done is None:
        return json.dumps({"skipped": "another reconciliation is under way"})
    return json.dumps({**asdict(done.statistics), "remarks": [say(remark) for remark in done.remarks]})
