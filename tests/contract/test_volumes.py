"""What a storage of disks has to do, on every adapter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from gpudev.adapters.aws.volumes import AwsVolumes
from gpudev.adapters.local.disks.folders import DiskFolders
from gpudev.adapters.local.disks.volumes import LocalVolumes
from gpudev.bootstrap.foundation import SystemClock
from gpudev.domain.disk import DiskId, SnapshotId, VolumeId
from gpudev.domain.errors import StorageRefused, StorageUnavailable
from gpudev.domain.volume import DiskTags, SnapshotPhase, SnapshotSpec, VolumePhase, VolumeSpec
from gpudev.ports.volumes import Volumes
from tests.support.ec2 import ZONES, Ec2, on_calls

pytestmark = pytest.mark.anyio

DISK = DiskId("d15c0000-0000-4000-8000-000000000001")
TAGS = DiskTags("ada", "work", DISK)
FIRST = VolumeSpec("first", TAGS, 20)


@pytest.fixture(params=["local", "aws"])
async def volumes(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Volumes]:
    if request.param == "aws":
        ec2: Ec2 = request.getfixturevalue("ec2")
        yield AwsVolumes(ec2.client(), ZONES[0])
        return
    async with LocalVolumes(DiskFolders(tmp_path, durable=False), SystemClock(), dict) as local:
        yield local


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while not await condition():  # noqa: ASYNC110 - the storage works by itself
            await asyncio.sleep(0.01)


async def make_volume(volumes: Volumes, spec: VolumeSpec = FIRST) -> VolumeId:
    await volumes.create_volume(spec)

    async def is_ready() -> bool:
        found = (await volumes.find(DISK, None)).volumes
        return bool(found) and all(each.phase is VolumePhase.READY for each in found)

    await eventually(is_ready)
    return (await volumes.find(DISK, None)).volumes[-1].volume_id


async def make_snapshot(volumes: Volumes, volume_id: VolumeId, name: str = "one") -> SnapshotId:
    await volumes.create_snapshot(SnapshotSpec(name, volume_id, TAGS))

    async def is_complete() -> bool:
        found = (await volumes.find(DISK, None)).find_snapshot(name)
        return found is not None and found.phase is SnapshotPhase.COMPLETED

    await eventually(is_complete)
    found = (await volumes.find(DISK, None)).find_snapshot(name)
    assert found is not None
    return found.snapshot_id


async def test_a_volume_says_whose_it_is(volumes: Volumes) -> None:
    await make_volume(volumes)
    [found] = (await volumes.find(DISK, None)).volumes
    assert found.tags == TAGS
    assert (found.size_gb, found.attached_to) == (20, "")
    assert abs(found.created_at - datetime.now(UTC)) < timedelta(minutes=5)


async def test_what_belongs_to_another_disk_is_not_found(volumes: Volumes) -> None:
    await make_volume(volumes)
    other = DiskId(str(uuid4()))
    assert (await volumes.find(other, None)).volumes == ()


async def test_a_volume_is_found_by_its_own_id_whatever_its_tags(volumes: Volumes) -> None:
    made = await make_volume(volumes)
    await make_snapshot(volumes, made)
    holdings = await volumes.find(DiskId(str(uuid4())), made)
    assert [each.volume_id for each in holdings.volumes] == [made]
    assert [each.volume_id for each in holdings.snapshots] == [made]


async def test_a_snapshot_of_the_same_token_is_the_same(volumes: Volumes) -> None:
    made = await make_volume(volumes)
    first = await make_snapshot(volumes, made, "one")
    assert await make_snapshot(volumes, made, "one") == first
    assert await make_snapshot(volumes, made, "two") != first
    assert len((await volumes.find(DISK, None)).snapshots) == 2


async def test_a_volume_of_a_snapshot_says_so(volumes: Volumes) -> None:
    made = await make_volume(volumes)
    snapshot = await make_snapshot(volumes, made)
    await make_volume(volumes, VolumeSpec("second", TAGS, 20, source_snapshot_id=snapshot))
    sources = {each.source_snapshot_id for each in (await volumes.find(DISK, None)).volumes}
    assert sources == {None, snapshot}


async def test_tags_are_replaced_on_volumes_and_snapshots(volumes: Volumes) -> None:
    made = await make_volume(volumes)
    snapshot = await make_snapshot(volumes, made)
    deleted = DiskTags("ada", "renamed", DISK, datetime(2030, 1, 1, tzinfo=UTC))
    for tags in (deleted, DiskTags("ada", "again", DISK)):
        await volumes.set_tags([made], [snapshot], tags)
        holdings = await volumes.find(DISK, None)
        assert [each.tags for each in (*holdings.volumes, *holdings.snapshots)] == [tags, tags]


async def test_a_volume_grows(volumes: Volumes) -> None:
    made = await make_volume(volumes)
    for _ in range(2):
        await volumes.grow_volume(made, 50)
    assert (await volumes.find(DISK, None)).volumes[0].size_gb == 50


async def test_deleting_is_the_same_twice_and_leaves_the_others(volumes: Volumes) -> None:
    made = await make_volume(volumes)
    first, second = await make_snapshot(volumes, made, "one"), await make_snapshot(volumes, made, "two")
    for _ in range(2):
        await volumes.delete_snapshot(first)
    assert [each.snapshot_id for each in (await volumes.find(DISK, None)).snapshots] == [second]
    for _ in range(2):
        await volumes.delete_volume(made)
    holdings = await volumes.find(DISK, made)
    assert holdings.volumes == ()
    assert [each.snapshot_id for each in holdings.snapshots] == [second]


async def test_everything_is_listed(volumes: Volumes) -> None:
    made = await make_volume(volumes)
    snapshot = await make_snapshot(volumes, made)
    assert [each.volume_id for each in await volumes.list_volumes()] == [made]
    assert [each.snapshot_id for each in await volumes.list_snapshots()] == [snapshot]


class TestLocal:
    """Bytes, which only this adapter has."""

    @pytest.fixture
    def folders(self, tmp_path: Path) -> DiskFolders:
        return DiskFolders(tmp_path, durable=False)

    @pytest.fixture
    async def local(self, folders: DiskFolders) -> AsyncIterator[LocalVolumes]:
        async with LocalVolumes(folders, SystemClock(), dict) as volumes:
            yield volumes

    async def test_a_snapshot_keeps_what_was_there(self, local: LocalVolumes, folders: DiskFolders) -> None:
        made = await make_volume(local)
        home = folders.volumes / made / "home"
        (home / "deep").mkdir(parents=True)
        (home / "deep" / "file").write_text("before")
        (home / "deep" / "closed").write_text("kept")
        (home / "deep" / "closed").chmod(0)
        (home / "link").symlink_to("/nowhere")
        snapshot = await make_snapshot(local, made)
        (home / "deep" / "file").write_text("after")
        listing = await local.list_files(snapshot)
        assert listing is not None
        assert "deep/file" in listing.text
        await make_volume(local, VolumeSpec("copy", TAGS, 20, source_snapshot_id=snapshot))
        [copy] = [v for v in (await local.find(DISK, None)).volumes if v.source_snapshot_id == snapshot]
        copied = folders.volumes / copy.volume_id / "home"
        assert (copied / "deep" / "file").read_text() == "before"
        assert (copied / "deep" / "closed").stat().st_size == 4
        assert (copied / "link").readlink() == Path("/nowhere")

    async def test_a_copy_that_cannot_be_made_has_failed_and_leaves_nothing(
        self, local: LocalVolumes, folders: DiskFolders
    ) -> None:
        gone = SnapshotSpec("one", VolumeId("vol-gone"), TAGS)
        await local.create_snapshot(gone)
        [failed] = await local.list_snapshots()
        assert failed.phase is SnapshotPhase.FAILED
        assert "vol-gone" in failed.detail
        assert list(folders.snapshots.iterdir()) == []

    async def test_what_was_half_made_goes_at_the_next_start(self, folders: DiskFolders) -> None:
        (folders.volumes / ".making-vol-1-x").mkdir(parents=True)
        async with LocalVolumes(folders, SystemClock(), dict) as volumes:
            assert await volumes.list_volumes() == ()
        assert list(folders.volumes.iterdir()) == []

    async def test_what_a_server_has_is_not_deleted(self, folders: DiskFolders) -> None:
        held = {VolumeId("vol-1"): "gpu-dev-7f3a91c2"}
        async with LocalVolumes(folders, SystemClock(), lambda: held) as volumes:
            with pytest.raises(StorageRefused, match="gpu-dev-7f3a91c2"):
                await volumes.delete_volume(VolumeId("vol-1"))


class TestAws:
    @pytest.fixture
    def aws(self, ec2: Ec2) -> AwsVolumes:
        return AwsVolumes(ec2.client(), ZONES[0])

    async def test_volumes_are_encrypted_gp3_in_the_zone_that_is_asked_for(
        self, aws: AwsVolumes, ec2: Ec2
    ) -> None:
        await aws.create_volume(VolumeSpec("first", TAGS, 20, zone=ZONES[1]))
        [made] = ec2.client().describe_volumes()["Volumes"]
        assert (made["VolumeType"], made["Encrypted"]) == ("gp3", True)
        assert made["AvailabilityZone"] == ZONES[1]

    async def test_without_a_zone_one_of_the_region_is_taken(self, ec2: Ec2) -> None:
        await AwsVolumes(ec2.client()).create_volume(FIRST)
        [made] = ec2.client().describe_volumes()["Volumes"]
        assert made["AvailabilityZone"].startswith("us-east-2")

    async def test_a_volume_that_a_machine_has_is_seen_and_not_deleted(
        self, aws: AwsVolumes, ec2: Ec2
    ) -> None:
        made = await make_volume(aws)
        machine = ec2.make_instance()
        ec2.client().attach_volume(VolumeId=made, InstanceId=machine, Device="/dev/sdf")
        assert (await aws.find(DISK, None)).volumes[0].attached_to == machine
        with pytest.raises(StorageRefused, match="VolumeInUse"):
            await aws.delete_volume(made)

    async def test_tags_of_earlier_tools_are_understood(self, aws: AwsVolumes, ec2: Ec2) -> None:
        tags = [{"Key": "gpu-dev-user", "Value": "bob"}, {"Key": "disk-name", "Value": "old"}]
        specification = [{"ResourceType": "volume", "Tags": tags}]
        ec2.client().create_volume(AvailabilityZone=ZONES[0], Size=10, TagSpecifications=specification)
        [found] = await aws.list_volumes()
        assert found.tags == DiskTags("bob", "old")

    async def test_volumes_of_nobody_are_not_listed(self, aws: AwsVolumes, ec2: Ec2) -> None:
        ec2.client().create_volume(AvailabilityZone=ZONES[0], Size=10)
        assert await aws.list_volumes() == ()

    async def test_aws_that_asks_to_wait_is_unavailable(self, aws: AwsVolumes, ec2: Ec2) -> None:
        ec2.fault = on_calls("DescribeVolumes", code="RequestLimitExceeded")
        with pytest.raises(StorageUnavailable):
            await aws.list_volumes()

    async def test_a_missing_right_is_a_refusal_with_advice(self, aws: AwsVolumes, ec2: Ec2) -> None:
        ec2.fault = on_calls("CreateVolume", code="UnauthorizedOperation")
        with pytest.raises(StorageRefused) as refused:
            await aws.create_volume(FIRST)
        assert "role" in refused.value.hint

    async def test_throttling_is_retried_by_its_code(self, ec2: Ec2) -> None:
        answers = iter(["RequestLimitExceeded", "RequestLimitExceeded", None])
        ec2.fault = lambda _name: next(answers, None)
        assert await AwsVolumes(ec2.client(tries=4), ZONES[0]).list_volumes() == ()

    async def test_no_answer_at_all_is_unavailable(self, ec2: Ec2) -> None:
        nobody = Ec2("http://127.0.0.1:9")
        with pytest.raises(StorageUnavailable):
            await AwsVolumes(nobody.client(), ZONES[0]).list_volumes()
