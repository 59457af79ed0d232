"""`cancel`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gpudev.client import codec, ssh
from gpudev.client.config import read_surroundings
from tests.support.fake_api import FakeApi, Reply
from tests.support.wire_values import ACTIVE, JOB_ID, an_event, as_sse
from tests.unit.cli.conftest import GpuDev

CANCELLED = replace(ACTIVE, status="cancelled")
JOB = f"/v1/jobs/{JOB_ID}"
ACTION = {"job_id": JOB_ID, "action": "cancel", "status": "requested", "message": "", "operation_id": "op"}


@pytest.fixture
def live(api: FakeApi) -> FakeApi:
    """A server with one live reservation, `train`."""
    events = as_sse(an_event(1, "cancelled", "cancelled"), an_event(2, "cleaned", "cancelled"))
    api.on("GET", "/v1/jobs/train", Reply(body=codec.encode(ACTIVE)))
    api.on("GET", JOB, Reply(body=codec.encode(CANCELLED)))
    api.on("POST", f"{JOB}/cancel", Reply(body=ACTION))
    api.on("GET", f"{JOB}/events", Reply(stream=events))
    api.on(
        "GET", "/v1/jobs", Reply(body={"jobs": codec.encode([ACTIVE]), "total": 1, "limit": 500, "offset": 0})
    )
    return api


@pytest.mark.parametrize("arguments", [["train"], ["--all", "--yes"]], ids=["one", "all"])
def test_cancel_waits_until_all_is_clean(gpu_dev: GpuDev, live: FakeApi, arguments: list[str]) -> None:
    result = gpu_dev("cancel", *arguments)
    assert (result.code, result.out) == (0, "train: cancelled\n")
    assert result.err == "Cancelling train (7f3a91c2).\n"
    assert len(live.seen("GET", f"{JOB}/events")) == 1


def test_cancel_removes_the_ssh_files(gpu_dev: GpuDev, live: FakeApi) -> None:
    config = ssh.write_config(read_surroundings(), live.url, ACTIVE, ())
    gpu_dev("cancel", "train")
    assert not config.exists()


def test_no_wait(gpu_dev: GpuDev, live: FakeApi) -> None:
    assert gpu_dev("cancel", "train", "--no-wait").code == 0
    assert not live.seen("GET", f"{JOB}/events")


def test_json(gpu_dev: GpuDev, live: FakeApi) -> None:
    assert json.loads(gpu_dev("cancel", "train", "--json").out) == [codec.encode(CANCELLED)]


def test_what_is_over_is_said_to_be_over(gpu_dev: GpuDev, live: FakeApi) -> None:
    result = gpu_dev("cancel", JOB_ID)
    assert (result.code, result.err) == (0, "train is over already (cancelled).\n")
    assert not live.seen("POST", f"{JOB}/cancel")


def test_one_unknown_id_and_nothing_is_cancelled(gpu_dev: GpuDev, live: FakeApi) -> None:
    assert gpu_dev("cancel", "train", "nope").code == 3
    assert not live.seen("POST", f"{JOB}/cancel")


@pytest.mark.parametrize("arguments", [[], ["--all", "train"], ["--all"]])
def test_it_must_be_clear_what_is_meant(gpu_dev: GpuDev, home: Path, arguments: list[str]) -> None:
    result = gpu_dev("cancel", *arguments)
    assert result.code == 2
    assert "--all" in result.err
