"""File listings of snapshots, in S3 as moto plays it and in the database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gpudev.adapters.aws.volumes import S3Listings
from gpudev.app.disks import DiskUseCases
from gpudev.bootstrap.foundation import Stores
from gpudev.domain.disk import DiskId, SnapshotId
from gpudev.domain.errors import Defect, StorageRefused
from tests.support.disk_world import DiskWorld, LocalStorage, MovableClock, make_caller
from tests.support.ec2 import REGION, Ec2
from tests.support.reservations import open_test_stores

pytestmark = pytest.mark.anyio

BUCKET = "listings"


@pytest.fixture
async def stores(database: str) -> AsyncIterator[Stores]:
    async with open_test_stores(database) as opened:
        yield opened


@pytest.fixture
def bucket(ec2: Ec2) -> S3Listings:
    client = ec2.client("s3")
    client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    return S3Listings(client, BUCKET)


async def test_what_is_kept_can_be_read(bucket: S3Listings) -> None:
    address = await bucket.keep(DiskId("disk"), SnapshotId("snap-1"), "ümlaut.txt")
    assert address == "s3://listings/disks/disk/snap-1.txt"
    assert await bucket.read(address) == "ümlaut.txt"


async def test_a_missing_bucket_is_refused_with_advice(ec2: Ec2) -> None:
    with pytest.raises(StorageRefused) as refused:
        await S3Listings(ec2.client("s3"), "no-such-bucket").keep(DiskId("disk"), SnapshotId("snap"), "text")
    assert "GPU_DEV_DISK_LISTING_BUCKET" in refused.value.hint


async def test_what_is_no_address_is_a_defect(bucket: S3Listings) -> None:
    with pytest.raises(Defect):
        await bucket.read("/etc/passwd")


@pytest.mark.parametrize("place", ["database", "s3"])
async def test_the_files_of_the_newest_snapshot_are_listed(
    stores: Stores, tmp_path: Path, place: str, request: pytest.FixtureRequest
) -> None:
    listings = request.getfixturevalue("bucket") if place == "s3" else None
    clock = MovableClock()
    caller = make_caller(await stores.users.upsert("ada"))
    world = DiskWorld(stores, LocalStorage(tmp_path, clock), caller, clock)
    world.disks = world.make_disk_engine(world.storage.volumes, listings)
    reservation = await world.submit("work")
    await world.drive()
    await world.write(reservation.id)
    await world.cancel(reservation)
    await world.drive()
    content = await DiskUseCases(stores.disks, clock, listings).read_content(caller, "work")
    [word] = world.expected[reservation.spec.disk_id or DiskId("")]
    assert word in content.text
    assert content.taken is not None
    row = await stores.database.fetch_row("SELECT latest_snapshot_content_s3 FROM disks")
    assert row is not None
    assert (row["latest_snapshot_content_s3"] is not None) == (place == "s3")
