"""What a storage of disks has to do, on every adapter."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gpudev.adapters.aws.volumes import AwsVolumes
from gpudev.adapters.local.disk_folders import DiskFolders
from gpudev.adapters.local.volumes import LocalVolumes
from gpudev.bootstrap.foundation import SystemClock
from gpudev.domain.disk import VolumeId
from gpudev.domain.errors import StorageRefused, StorageUnavailable
from gpudev.domain.volume import DiskTags, SnapshotPhase, SnapshotSpec, VolumeSpec
from gpudev.ports.volumes import Volumes
from gpudev.texts.sentences import say
from tests.contract.volume_rules import DISK, FIRST, TAGS, VolumeRules, make_snapshot, make_volume
from tests.support.ec2 import ZONES, Ec2, on_calls
from tests.support.postgres_process import until

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["local", "aws"])
async def volumes(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Volumes]:
    if request.param == "aws":
        ec2: Ec2 = request.getfixturevalue("ec2")
        yield AwsVolumes(ec2.client(), ZONES[0])
        return
    async with LocalVolumes(DiskFolders(tmp_path, durable=False), SystemClock(), dict) as local:
        yield local


class TestRules(VolumeRules):
    pass


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
        assert failed.detail is not None
        assert "vol-gone" in say(failed.detail)
        assert list(folders.snapshots.iterdir()) == []

    async def test_what_was_half_made_goes_at_the_next_start(self, folders: DiskFolders) -> None:
        (folders.volumes / ".making-vol-1-x").mkdir(parents=True)
        async with LocalVolumes(folders, SystemClock(), dict) as volumes:
            assert await volumes.list_volumes() == ()
            # Start-up does not wait for it.
            await until(lambda: list(folders.volumes.iterdir()) == [])

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
