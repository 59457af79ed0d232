"""Rows of disks and EBS volumes that say different things: what each case comes to, with its statistics."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import pytest

from gpudev.adapters.aws.volumes import AwsVolumes
from gpudev.app.disk_reconciliation import DiskReconciliation
from gpudev.app.figures import DiskFigures
from gpudev.bootstrap.foundation import Stores
from gpudev.domain.disk import Disk, DiskId, DiskOperation, DiskSpec
from gpudev.domain.names import OperationId
from gpudev.domain.plans.reconciliation import Statistics
from gpudev.ports.disks import StoredReconciliation
from gpudev.ports.reservations import HomeWish
from gpudev.telemetry import DISK_RECONCILIATION
from gpudev.texts.sentences import say
from gpudev.texts.vocabulary import DiskOperationKind, DiskState
from tests.support.disk_world import MovableClock
from tests.support.ec2 import REGION, ZONES, Ec2, on_calls
from tests.support.reservations import NOON, make_reservation, open_test_stores, submit
from tests.support.zygote import run_gpu_dev

pytestmark = pytest.mark.anyio


@dataclass(frozen=True, slots=True)
class Ledger:
    """The database and EC2, with short ways to put something into each."""

    stores: Stores
    ec2: Ec2
    clock: MovableClock = field(default_factory=MovableClock)

    async def reconcile(self) -> StoredReconciliation:
        volumes = AwsVolumes(self.ec2.client(), ZONES[0])
        done = await DiskReconciliation(self.stores.disk_ledger, volumes, self.clock, "test").run()
        assert done is not None
        assert await self.stores.disk_ledger.find_last() == done
        return done

    async def add_row(self, name: str = "work", **columns: Any) -> Disk:
        user = await self.stores.users.upsert("ada")
        disk = Disk(DiskId(str(uuid4())), DiskSpec(user.user_id, "ada", name, 20, NOON))
        operation = DiskOperation(OperationId(str(uuid4())), DiskOperationKind.CREATE, NOON)
        await self.stores.disks.create(disk, operation)
        values = {"state": "available"} | columns
        for column, value in values.items():
            await self.stores.database.execute(
                f"UPDATE disks SET {column} = $2 WHERE disk_id = $1",  # noqa: S608 - columns of ours
                disk.id,
                value,
            )
        return await self.stores.disks.get(disk.id)

    def add_volume(self, name: str = "work", size: int = 20, **tags: str) -> str:
        named = {"gpu-dev-user": "ada", "disk_name": name} | tags
        kept = [{"Key": key.replace("__", "-"), "Value": value} for key, value in named.items() if value]
        made = self.ec2.client().create_volume(
            AvailabilityZone=ZONES[0],
            Size=size,
            VolumeType="gp3",
            TagSpecifications=[{"ResourceType": "volume", "Tags": kept}],
        )
        return str(made["VolumeId"])

    def add_volumes_by_age(self, count: int) -> list[str]:
        """The oldest first; of those of one second, which is all that EC2 says, ids decide."""
        for _ in range(count):
            self.add_volume()
        volumes = self.ec2.client().describe_volumes()["Volumes"]
        ours = [each for each in volumes if each.get("Tags")]
        in_order = sorted(ours, key=lambda each: (each["CreateTime"], each["VolumeId"]))
        return [str(each["VolumeId"]) for each in in_order]

    def add_snapshot(self, volume_id: str) -> str:
        tags = [{"Key": "gpu-dev-user", "Value": "ada"}]
        specification = [{"ResourceType": "snapshot", "Tags": tags}]
        made = self.ec2.client().create_snapshot(VolumeId=volume_id, TagSpecifications=specification)
        return str(made["SnapshotId"])

    async def list_rows(self) -> list[dict[str, Any]]:
        rows = await self.stores.database.fetch("SELECT * FROM disks ORDER BY created_at, name")
        return [dict(row) for row in rows]


@pytest.fixture
async def ledger(database: str, ec2: Ec2) -> AsyncIterator[Ledger]:
    async with open_test_stores(database) as stores:
        await stores.users.upsert("ada")
        yield Ledger(stores, ec2)


def counted(**changes: int) -> Statistics:
    return replace(Statistics(), **changes)


async def test_a_volume_only_in_aws_is_imported(ledger: Ledger) -> None:
    volume = ledger.add_volume("found", 30)
    done = await ledger.reconcile()
    assert done.statistics == counted(aws_volumes=1, created=1)
    [row] = await ledger.list_rows()
    assert (row["name"], row["size_gb"], row["ebs_volume_id"]) == ("found", 30, volume)
    assert (row["is_deleted"], row["operation_id"], row["last_used"]) == (False, None, None)
    again = await ledger.reconcile()
    assert again.statistics == counted(aws_volumes=1, db_records=1, synced=1)


async def test_a_row_only_in_the_database_is_freed_and_kept(ledger: Ledger) -> None:
    user = await ledger.stores.users.upsert("ada")
    ended = await submit(ledger.stores, make_reservation(user))
    await ledger.stores.database.execute(
        "UPDATE reservation_records SET status = 'cancelled', ended_at = now(), cleaned_at = now()"
    )
    await ledger.add_row(state="available", ebs_volume_id="vol-gone")
    await ledger.stores.database.execute("UPDATE disks SET state = 'in_use', reservation_id = $1", ended.id)
    done = await ledger.reconcile()
    assert done.statistics == counted(db_records=1, updated=1, orphaned_db_active=1)
    [row] = await ledger.list_rows()
    assert (row["in_use"], row["reservation_id"], row["ebs_volume_id"]) == (False, None, "vol-gone")
    assert "vol-gone" in say(done.remarks[0])


async def test_a_deleted_row_only_in_the_database_is_left(ledger: Ledger) -> None:
    await ledger.add_row(ebs_volume_id="vol-gone")
    await ledger.stores.database.execute("UPDATE disks SET state = 'soft_deleted', delete_date = now()")
    before = await ledger.list_rows()
    done = await ledger.reconcile()
    assert done.statistics == counted(db_records=1, orphaned_db_deleted=1)
    assert await ledger.list_rows() == before


async def test_where_both_say_the_same_nothing_is_written(ledger: Ledger) -> None:
    volume = ledger.add_volume()
    await ledger.add_row(ebs_volume_id=volume, zone=ZONES[0])
    before = await ledger.list_rows()
    done = await ledger.reconcile()
    assert done.statistics == counted(aws_volumes=1, db_records=1, synced=1)
    assert await ledger.list_rows() == before


async def test_where_both_differ_the_row_is_brought_in_line(ledger: Ledger) -> None:
    volume = ledger.add_volume(size=50)
    ledger.add_snapshot(volume)
    machine = ledger.ec2.make_instance()
    ledger.ec2.client().attach_volume(VolumeId=volume, InstanceId=machine, Device="/dev/sdf")
    before = await ledger.add_row(ebs_volume_id="vol-old", last_used=NOON)
    done = await ledger.reconcile()
    assert done.statistics == counted(aws_volumes=1, db_records=1, synced=1, updated=1)
    [row] = await ledger.list_rows()
    assert (row["ebs_volume_id"], row["size_gb"], row["in_use"]) == (volume, 50, True)
    assert (row["snapshot_count"], row["is_backing_up"]) == (1, False)
    assert row["last_snapshot_at"] is not None
    assert (row["is_deleted"], row["last_used"], str(row["operation_id"])) == (
        False,
        NOON,
        before.operation_id,
    )


async def test_a_disk_that_was_left_behind_is_given_back_by_way_of_a_snapshot(ledger: Ledger) -> None:
    user = await ledger.stores.users.upsert("ada")
    ended = await submit(ledger.stores, make_reservation(user))
    await ledger.stores.database.execute(
        "UPDATE reservation_records SET status = 'cancelled', ended_at = now(), cleaned_at = now()"
    )
    await ledger.add_row(ebs_volume_id=ledger.add_volume(), zone=ZONES[0], is_dirty=True)
    await ledger.stores.database.execute("UPDATE disks SET state = 'in_use', reservation_id = $1", ended.id)
    await ledger.reconcile()
    [row] = await ledger.list_rows()
    assert (row["in_use"], row["reservation_id"], row["state"]) == (False, None, "snapshotting")


async def test_a_disk_that_a_live_reservation_is_attaching_is_never_marked_free(ledger: Ledger) -> None:
    user = await ledger.stores.users.upsert("ada")
    volume = ledger.add_volume()
    disk = await ledger.add_row(ebs_volume_id=volume, zone=ZONES[0])
    asked = await submit(ledger.stores, make_reservation(user), HomeWish("work", disk.id))
    await ledger.stores.database.execute(
        "UPDATE disks SET state = 'attaching', reservation_id = $1", asked.id
    )
    for is_there in (True, False):
        if not is_there:
            ledger.ec2.client().delete_volume(VolumeId=volume)
        await ledger.reconcile()
        [row] = await ledger.list_rows()
        assert (row["state"], str(row["reservation_id"]), row["in_use"]) == ("attaching", asked.id, True)


@pytest.mark.parametrize("missing", ["gpu-dev-user", "disk_name"])
async def test_a_volume_without_its_tags_is_passed_over(ledger: Ledger, missing: str) -> None:
    volume = ledger.add_volume(**{missing.replace("-", "__"): "", missing: ""})
    done = await ledger.reconcile()
    assert done.statistics == counted(aws_volumes=1)
    assert volume in say(done.remarks[0])
    assert await ledger.list_rows() == []


async def test_of_duplicates_the_attached_then_the_named_then_the_newest_counts(ledger: Ledger) -> None:
    first, second, third = ledger.add_volumes_by_age(3)
    done = await ledger.reconcile()
    assert done.statistics == counted(aws_volumes=3, created=1)
    assert len(done.remarks) == 2
    [row] = await ledger.list_rows()
    assert row["ebs_volume_id"] == third
    await ledger.stores.database.execute("UPDATE disks SET ebs_volume_id = $1", first)
    await ledger.reconcile()
    assert (await ledger.list_rows())[0]["ebs_volume_id"] == first
    machine = ledger.ec2.make_instance()
    ledger.ec2.client().attach_volume(VolumeId=second, InstanceId=machine, Device="/dev/sdf")
    await ledger.reconcile()
    assert (await ledger.list_rows())[0]["ebs_volume_id"] == second
    there = {each["VolumeId"] for each in ledger.ec2.client().describe_volumes()["Volumes"]}
    assert {first, second, third} <= there


async def test_when_snapshots_cannot_be_listed_the_rest_is_synced(ledger: Ledger) -> None:
    volume = ledger.add_volume(size=50)
    ledger.add_snapshot(volume)
    await ledger.add_row(ebs_volume_id=volume, snapshot_count=7, last_snapshot_at=NOON)
    ledger.ec2.fault = on_calls("DescribeSnapshots", code="RequestLimitExceeded")
    done = await ledger.reconcile()
    assert done.statistics == counted(aws_volumes=1, db_records=1, synced=1, updated=1, errors=1)
    [row] = await ledger.list_rows()
    assert (row["size_gb"], row["snapshot_count"], row["last_snapshot_at"]) == (50, 7, NOON)


async def test_when_volumes_cannot_be_listed_nothing_changes(ledger: Ledger) -> None:
    ledger.add_volume("other")
    await ledger.add_row(ebs_volume_id="vol-gone")
    before = await ledger.list_rows()
    ledger.ec2.fault = on_calls("DescribeVolumes", code="RequestLimitExceeded")
    done = await ledger.reconcile()
    assert done.statistics == counted(errors=1)
    assert await ledger.list_rows() == before


async def test_one_disk_that_the_database_refuses_does_not_stop_the_others(ledger: Ledger) -> None:
    ledger.add_volume("not a name")
    ledger.add_volume("of-a-stranger", **{"gpu-dev-user": "zoe"})
    ledger.add_volume("good")
    done = await ledger.reconcile()
    assert done.statistics == counted(aws_volumes=3, created=1, errors=2)
    assert [row["name"] for row in await ledger.list_rows()] == ["good"]


async def test_one_at_a_time(ledger: Ledger) -> None:
    async with ledger.stores.disk_ledger.lock() as is_ours:
        assert is_ours
        volumes = AwsVolumes(ledger.ec2.client(), ZONES[0])
        assert (
            await DiskReconciliation(ledger.stores.disk_ledger, volumes, ledger.clock, "test").run() is None
        )


async def test_the_figures_are_shown(ledger: Ledger) -> None:
    ledger.add_volume()
    await ledger.reconcile()
    await DiskFigures(ledger.stores.disk_ledger, ledger.stores.health).show()
    assert DISK_RECONCILIATION.labels("created")._value.get() == 1


async def test_the_command_of_the_cron_job_reconciles_once(ledger: Ledger) -> None:
    ledger.add_volume("found")
    environment = {
        **os.environ,
        "GPU_DEV_DATABASE_URL": ledger.stores.database.dsn,
        "AWS_ENDPOINT_URL": ledger.ec2.url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": REGION,
        "GPU_DEV_DISK_STORAGE": "aws",
    }
    done = await asyncio.to_thread(run_gpu_dev, ("gpu-dev", "server", "availability"), environment, 60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["created"] == 1
    assert [row["state"] for row in await ledger.list_rows()] == [DiskState.AVAILABLE]
