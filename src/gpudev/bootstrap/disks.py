"""The storage of disks, as the settings want it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from gpudev.adapters.local.disks.attachments import list_attached
from gpudev.adapters.local.disks.folders import DiskFolders
from gpudev.adapters.local.disks.volumes import LocalVolumes
from gpudev.bootstrap.foundation import uses_kubernetes
from gpudev.ports.clock import Clock
from gpudev.ports.listings import Listings
from gpudev.ports.volumes import Volumes
from gpudev.settings import Settings


@asynccontextmanager
async def open_volumes(settings: Settings, clock: Clock) -> AsyncIterator[Volumes]:
    """Directories on one machine, EBS everywhere else."""
    state_dir = find_state_dir(settings)
    if state_dir is not None:
        async with open_local_volumes(state_dir, clock) as volumes:
            yield volumes
        return
    yield _make_aws_volumes(settings)


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


def read_volumes(settings: Settings, clock: Clock) -> Volumes:
    """To look at the storage beside whoever works on it; nothing is made with it or cleaned up."""
    state_dir = find_state_dir(settings)
    if state_dir is not None:
        return LocalVolumes(DiskFolders(state_dir), clock, lambda: list_attached(state_dir))
    return _make_aws_volumes(settings)


def make_listings(settings: Settings) -> Listings | None:
    """Where file listings are kept; None: in the database."""
    if not settings.disks.listing_bucket:
        return None
    from gpudev.adapters.aws.listings import S3Listings  # noqa: PLC0415 - as above
    from gpudev.adapters.aws.volumes import make_client  # noqa: PLC0415 - as above

    return S3Listings(make_client("s3", settings.aws.region), settings.disks.listing_bucket)
