"""The storage of disks as the settings want it, and its reconciliation.

Reconciliation runs once, as a CronJob does it, or again and again on one machine.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from gpudev.adapters.absent import AbsentVolumes
from gpudev.adapters.local.disk_folders import DiskFolders, list_attached
from gpudev.adapters.local.volumes import LocalVolumes
from gpudev.bootstrap.foundation import uses_kubernetes
from gpudev.ports.clock import Clock
from gpudev.ports.volumes import Listings, VolumeListings, Volumes
from gpudev.settings import Settings

if TYPE_CHECKING:
    from gpudev.adapters.kubernetes.config import ClaimConfig


import json
from dataclasses import asdict

from gpudev.app.disk_reconciliation import DiskReconciliation
from gpudev.bootstrap.foundation import Stores, SystemClock
from gpudev.texts.sentences import say


@asynccontextmanager
async def open_volumes(settings: Settings, clock: Clock) -> AsyncIterator[Volumes]:
    """Directories on one machine; elsewhere what `GPU_DEV_DISK_STORAGE` says."""
    state_dir = find_state_dir(settings)
    if state_dir is not None:
        async with open_local_volumes(state_dir, clock) as volumes:
            yield volumes
        return
    match settings.disks.storage:
        case "kubernetes":
            async with _open_claims(settings) as volumes:
                yield volumes
        case "aws":
            yield _make_aws_volumes(settings)
        case "none":
            yield AbsentVolumes()
        case other:
            assert_never(other)


def can_mount(settings: Settings) -> bool:
    """Whether a dev server can have a disk at all."""
    return not uses_kubernetes(settings) or settings.disks.storage != "none"


def stay_in_zone(settings: Settings) -> bool:
    """Whether a disk can only be used where it was first: a snapshot of EBS takes it elsewhere."""
    return uses_kubernetes(settings) and settings.disks.storage == "kubernetes"


@asynccontextmanager
async def _open_claims(settings: Settings) -> AsyncIterator[Volumes]:
    # Late: one machine does without all of this.
    from gpudev.adapters.kubernetes.client import connect  # noqa: PLC0415 - see above
    from gpudev.adapters.kubernetes.disks.volumes import KubernetesVolumes  # noqa: PLC0415 - see above

    async with connect(settings.kubernetes.kubeconfig) as client:
        yield KubernetesVolumes(client, _make_claim_config(settings))


def _make_claim_config(settings: Settings) -> ClaimConfig:
    from gpudev.adapters.kubernetes.config import ClaimConfig  # noqa: PLC0415 - as above

    return ClaimConfig(
        settings.kubernetes.namespace,
        settings.disks.storage_class,
        settings.disks.snapshot_class,
        settings.disks.zone_label,
    )


def find_state_dir(settings: Settings) -> Path | None:
    """Where one machine keeps disks; in front of Kubernetes a state folder has nothing to do with them."""
    return None if uses_kubernetes(settings) else settings.local.state_dir


def _make_aws_volumes(settings: Settings) -> Volumes:
    # Late: botocore takes longer to load than all the rest, and one machine does without.
    from gpudev.adapters.aws.volumes import AwsVolumes, make_client  # noqa: PLC0415 - see above

    client = make_client("ec2", settings.aws.region)
    return AwsVolumes(client, settings.disks.zone, settings.disks.kms_key)


@asynccontextmanager
async def open_local_volumes(state_dir: Path, clock: Clock) -> AsyncIterator[Volumes]:
    folders = DiskFolders(state_dir)
    async with LocalVolumes(folders, clock, lambda: list_attached(state_dir)) as volumes:
        yield volumes


def read_volumes(settings: Settings, clock: Clock) -> VolumeListings:
    """To look at the storage beside whoever works on it; nothing is made with it or cleaned up."""
    state_dir = find_state_dir(settings)
    if state_dir is not None:
        return LocalVolumes(DiskFolders(state_dir), clock, lambda: list_attached(state_dir))
    if settings.disks.storage == "kubernetes":
        from gpudev.adapters.kubernetes.disks.volumes import ClaimListings  # noqa: PLC0415 - as above

        return ClaimListings(settings.kubernetes.kubeconfig, _make_claim_config(settings))
    return _make_aws_volumes(settings) if settings.disks.storage == "aws" else AbsentVolumes()


def make_listings(settings: Settings) -> Listings | None:
    """Where file listings are kept; None: in the database."""
    if not settings.disks.listing_bucket:
        return None
    from gpudev.adapters.aws.volumes import S3Listings, make_client  # noqa: PLC0415 - only the extra `aws` brings it

    return S3Listings(make_client("s3", settings.aws.region), settings.disks.listing_bucket)


def make_reconciliation(settings: Settings, stores: Stores, volumes: VolumeListings) -> DiskReconciliation:
    return DiskReconciliation(stores.disk_ledger, volumes, SystemClock(), settings.process.hostname)


def make_own_reconciliation(
    settings: Settings, stores: Stores, volumes: VolumeListings
) -> DiskReconciliation | None:
    """For a controller that does it itself, which is that of `gpu-dev up`; elsewhere a CronJob does it."""
    is_own = settings.local.state_dir is not None and can_mount(settings)
    return make_reconciliation(settings, stores, volumes) if is_own else None


async def reconcile_once(settings: Settings, stores: Stores) -> str:
    """The statistics as a line of JSON."""
    done = await make_reconciliation(settings, stores, read_volumes(settings, SystemClock())).run()
    if done is None:
        return json.dumps({"skipped": "another reconciliation is under way"})
    return json.dumps({**asdict(done.statistics), "remarks": [say(remark) for remark in done.remarks]})
