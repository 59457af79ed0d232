"""The availability job against Auto Scaling groups as moto plays them, and a real database."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from typing import Any

import asyncpg
import pytest

from gpudev.adapters.aws.scaling import AwsScaling
from gpudev.ports.cluster import ScalingUnavailable
from tests.support.reservations import open_test_stores
from tests.support.sts import REGION, Sts, make_client
from tests.support.zygote import run_gpu_dev

pytestmark = pytest.mark.anyio

PREFIX = "pytorch-gpu-dev-gpu-nodes-"
GROUPS = {"t4": 2, "t4-small": 1, "h100-reserved": 2, "h100-on-demand": 1, "x9": 4}


@pytest.fixture(scope="module")
def aws(sts: Sts) -> dict[str, str]:
    """The environment of somebody who may look at groups, which are made first."""
    scaling: Any = make_client("autoscaling", sts.url, sts.root)
    ec2: Any = make_client("ec2", sts.url, sts.root)
    zone = ec2.describe_availability_zones()["AvailabilityZones"][0]["ZoneName"]
    image = ec2.describe_images()["Images"][0]["ImageId"]
    scaling.create_launch_configuration(
        LaunchConfigurationName="nodes", ImageId=image, InstanceType="t2.micro"
    )
    for name, count in GROUPS.items():
        scaling.create_auto_scaling_group(
            AutoScalingGroupName=f"{PREFIX}{name}",
            LaunchConfigurationName="nodes",
            MinSize=0,
            MaxSize=9,
            DesiredCapacity=count,
            AvailabilityZones=[zone],
        )
    return {
        "GPU_DEV_AUTOSCALING_ENDPOINT": sts.url,
        "AWS_ENDPOINT_URL": sts.url,
        "GPU_DEV_DISK_STORAGE": "aws",
        "AWS_REGION": REGION,
        "AWS_ACCESS_KEY_ID": sts.root.access_key_id,
        "AWS_SECRET_ACCESS_KEY": sts.root.secret,
    }


def run_job(dsn: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    settings = {"GPU_DEV_DATABASE_URL": dsn, "HOSTNAME": "the-job", **environment}
    return run_gpu_dev(("gpu-dev", "server", "availability"), {**kept, **settings}, 60)


async def read_types(dsn: str) -> dict[str, tuple[int, int, str]]:
    connection = await asyncpg.connect(dsn)
    try:
        rows = await connection.fetch("SELECT * FROM gpu_types")
    finally:
        await connection.close()
    return {
        row["gpu_type"]: (
            row["desired_capacity"],
            row["running_instances"],
            row["last_availability_updated_by"],
        )
        for row in rows
    }


async def test_the_job_writes_what_the_groups_come_to(database: str, aws: dict[str, str]) -> None:
    async with open_test_stores(database):
        pass
    done = await asyncio.to_thread(run_job, database, aws)
    assert done.returncode == 0, done.stderr
    types = await read_types(database)
    assert types["t4"] == (2, 2, "the-job")
    assert types["t4-small"] == (1, 1, "the-job")
    assert types["h100"] == (3, 3, "the-job")
    assert types["b200"] == (0, 0, "the-job")


async def count_reconciliations(dsn: str) -> int:
    async with open_test_stores(dsn) as stores:
        done = "SELECT count(*) FROM disk_reconciliations WHERE reconciled_by = 'the-job' AND errors = 0"
        return int(await stores.database.fetch_value(done))


async def test_the_job_reconciles_disks_as_well(database: str, aws: dict[str, str]) -> None:
    done = await asyncio.to_thread(run_job, database, aws)
    counted = json.loads(done.stdout.splitlines()[-1])
    assert (counted["aws_volumes"], counted["db_records"], counted["errors"]) == (0, 0, 0)
    assert await count_reconciliations(database) == 1


async def test_a_cloud_that_does_not_answer_changes_nothing(database: str, aws: dict[str, str]) -> None:
    async with open_test_stores(database):
        pass
    before = await read_types(database)
    nobody = {**aws, "GPU_DEV_AUTOSCALING_ENDPOINT": "http://127.0.0.1:1"}
    done = await asyncio.to_thread(run_job, database, nobody)
    assert done.returncode == 1
    assert "Auto Scaling" in done.stderr
    assert await read_types(database) == before
    assert await count_reconciliations(database) == 1, "disks do not wait for the capacity"


async def test_all_pages_are_read(aws: dict[str, str], sts: Sts, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in aws.items():
        monkeypatch.setenv(name, value)
    groups = await AwsScaling(REGION, sts.url, page_size=1).list_groups()
    assert {group.name: group.desired for group in groups} == {
        f"{PREFIX}{name}": count for name, count in GROUPS.items()
    }
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(ScalingUnavailable):
        await AwsScaling(REGION, sts.url).list_groups()
