"""`why` and `edit`: what they ask for. `tests/golden/cli` has what they print."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gpudev.client import codec
from tests.support.fake_api import FakeApi, Reply
from tests.support.wire_values import ACTIVE, JOB_ID, QUEUED, an_event, as_sse
from tests.unit.cli.conftest import GpuDev

JOB = f"/v1/jobs/{JOB_ID}"


@pytest.fixture
def queued(api: FakeApi) -> FakeApi:
    api.on("GET", "/v1/jobs/train", Reply(body=codec.encode(QUEUED)))
    events = an_event(1, "submitted", "queued"), an_event(2, "queued", "queued", "No room.")
    api.on("GET", f"{JOB}/events", Reply(stream=as_sse(*events)))
    return api


def test_why_reads_the_history_and_does_not_wait(gpu_dev: GpuDev, queued: FakeApi) -> None:
    result = gpu_dev("why", "train")
    assert result.code == 0
    assert result.out.startswith("train (7f3a91c2) waits in the queue.\n")
    assert queued.requests[-1].path.endswith("/events?follow=false")


def test_a_server_that_goes_on_is_not_waited_for(gpu_dev: GpuDev, queued: FakeApi) -> None:
    told = (
        as_sse(an_event(1, "submitted", "queued")) + ": still here\n\n" + as_sse(an_event(2, "x", "queued"))
    )
    queued.on("GET", f"{JOB}/events", Reply(stream=told))
    assert [event["number"] for event in json.loads(gpu_dev("why", "train", "--json").out)["events"]] == [1]


def test_why_as_json(gpu_dev: GpuDev, queued: FakeApi) -> None:
    shown = json.loads(gpu_dev("why", "train", "--json").out)
    assert shown["job"] == codec.encode(QUEUED)
    assert [stage["stage"] for stage in shown["stages"]] == ["looked at", "in the queue"]
    assert shown["next"][-1] == "gpu-dev cancel 7f3a91c2"


LEAVING = "Node t4-0 is being taken out of service."


@pytest.mark.parametrize(
    "told, warning, last_step",
    [
        (["node_leaves"], LEAVING, "gpu-dev reserve -t "),
        (["node_leaves", "node_stays"], None, "gpu-dev extend 7f3a91c2 "),
    ],
    ids=["leaves", "stays"],
)
def test_more_time_is_offered_only_where_there_is_some(
    gpu_dev: GpuDev, api: FakeApi, told: list[str], warning: str | None, last_step: str
) -> None:
    api.on("GET", "/v1/jobs/train", Reply(body=codec.encode(replace(ACTIVE, warning=warning))))
    events = [an_event(number, kind, "active", LEAVING) for number, kind in enumerate(told, 1)]
    api.on("GET", f"{JOB}/events", Reply(stream=as_sse(*events)))
    shown = json.loads(gpu_dev("why", "train", "--json").out)
    assert shown["next"][-1].startswith(last_step)
    assert len([line for line in shown["because"] if "node is taken" in line or "Note:" in line]) == 1


@pytest.mark.parametrize(
    "words", [("edit", "train", "--extend", "90m"), ("extend", "train", "1.5")], ids=" ".join
)
def test_edit_extends_as_extend_does(gpu_dev: GpuDev, api: FakeApi, words: tuple[str, ...]) -> None:
    asked = {"job_id": JOB_ID, "action": "extend", "status": "requested", "message": "", "operation_id": "op"}
    done = {"operation_id": "op", "action": "extend", "status": "done", "started_at": "2030-01-15T14:00:00Z"}
    for name in ("train", JOB_ID):
        api.on("GET", f"/v1/jobs/{name}", Reply(body=codec.encode(ACTIVE)))
        api.on("POST", f"/v1/jobs/{name}/extend", Reply(body=asked))
    api.on("GET", "/v1/operations/op", Reply(body=done))
    result = gpu_dev(*words)
    assert result.code == 0, result.err
    assert result.out.startswith("train ends ")
    sent = [seen.json for seen in api.requests if seen.path.endswith("/extend")]
    assert sent == [{"extension_hours": 1.5}]


def test_edit_without_a_change_and_without_a_terminal(gpu_dev: GpuDev, api: FakeApi) -> None:
    result = gpu_dev("edit", "train")
    assert result.code == 2
    assert "Say what to change: --extend TIME." in result.err
