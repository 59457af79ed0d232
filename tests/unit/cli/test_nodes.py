"""`gpu-dev admin nodes`, `drain` and `undrain`: what they ask for and what they print."""

from __future__ import annotations

import json
from datetime import UTC, timedelta

import pytest

from gpudev.cli.render.admin import format_change, format_nodes
from gpudev.cli.render.times import Now
from gpudev.client import codec
from gpudev.wire.admin import NodeChanged, NodeDetail, NodeList, NodeReservation
from tests.support.fake_api import FakeApi, Reply
from tests.support.golden import check_golden
from tests.support.wire_values import NOW
from tests.unit.cli.conftest import GpuDev

CLOCK = Now(NOW, UTC)
TRAIN = NodeReservation(
    job_id="7f3a91c2-1111-4222-8333-444455556666",
    name="train",
    user="ada",
    status="active",
    gpu_count=4,
    expires_at=NOW + timedelta(hours=2),
)
START = NodeReservation(
    job_id="0b3a91c2-1111-4222-8333-444455556666", name="try", user="eve", status="preparing", gpu_count=1
)
DRAINING = NodeDetail(
    name="h100-0",
    gpu_type="h100",
    slots=8,
    state="draining",
    reservations=[TRAIN, START],
    reason="its fans are replaced",
    drained_by="grace",
    drained_at=NOW,
)
IN_SERVICE = NodeDetail(name="h100-1", gpu_type="h100", slots=8, state="in_service", reservations=[])
CHANGED = NodeChanged(
    node=DRAINING, message="Node h100-0 is being drained: nothing new is placed there. 2 are still there."
)


def test_nodes_as_a_table() -> None:
    check_golden("cli/admin_nodes.txt", format_nodes([DRAINING, IN_SERVICE], CLOCK))


def test_a_drain_with_what_it_waits_for() -> None:
    check_golden("cli/admin_drain.txt", format_change(CHANGED, CLOCK))


@pytest.mark.parametrize("name", ["nodes", "drain", "undrain"])
def test_help(gpu_dev: GpuDev, name: str) -> None:
    result = gpu_dev("admin", name, "-h")
    assert result.code == 0
    check_golden(f"cli/help_admin_{name}.txt", result.out.rstrip("\n"))


def test_nodes_are_listed_in_every_form(gpu_dev: GpuDev, api: FakeApi) -> None:
    listed = NodeList(nodes=[DRAINING, IN_SERVICE])
    api.on("GET", "/v1/admin/nodes", Reply(body=codec.encode(listed)))
    assert "its fans are replaced" in gpu_dev("admin", "nodes").out
    assert json.loads(gpu_dev("admin", "nodes", "--json").out) == codec.encode(listed)
    assert gpu_dev("admin", "nodes", "-o", "name").out == "h100-0\nh100-1\n"


def test_a_node_is_drained_with_its_reason(gpu_dev: GpuDev, api: FakeApi) -> None:
    api.on("POST", "/v1/admin/nodes/h100-0/drain", Reply(body=codec.encode(CHANGED)))
    result = gpu_dev("admin", "drain", "h100-0", "--reason", "its fans are replaced")
    assert CHANGED.message in result.out
    [asked] = api.seen("POST", "/v1/admin/nodes/h100-0/drain")
    assert json.loads(asked.body) == {"reason": "its fans are replaced"}
    assert json.loads(gpu_dev("admin", "drain", "h100-0", "--json").out) == codec.encode(CHANGED)


def test_a_node_is_put_back(gpu_dev: GpuDev, api: FakeApi) -> None:
    changed = NodeChanged(node=IN_SERVICE, message="Node h100-1 is in service again.")
    api.on("POST", "/v1/admin/nodes/h100-1/undrain", Reply(body=codec.encode(changed)))
    assert gpu_dev("admin", "undrain", "h100-1").out == "Node h100-1 is in service again.\n"


def test_an_unknown_node_is_told_with_those_there_are(gpu_dev: GpuDev, api: FakeApi) -> None:
    refused = {"detail": 'There is no node "x".', "code": "not_found", "hint": "Nodes: h100-0, h100-1."}
    api.on("POST", "/v1/admin/nodes/x/drain", Reply(404, refused))
    result = gpu_dev("admin", "drain", "x")
    assert result.code == 3
    assert 'There is no node "x".' in result.err
    assert "Nodes: h100-0, h100-1." in result.err
