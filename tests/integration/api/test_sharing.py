"""Quotas and node labels of the policy file, asked of the API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpudev.domain.capacity import NodeRoom
from gpudev.domain.names import NodeName
from tests.integration.api.conftest import Person, offer_types
from tests.support.api_server import ApiServer, running_api
from tests.support.reservations import open_test_stores

POLICY = """
[[quotas]]
user = "ada"
gpus = 2
waiting = 2

[[quotas]]
user = "eve"
gpu_hours = 4

[node_labels]
nsight = ["true"]
"""


@pytest.fixture(scope="module")
def api_server(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    asyncio.run(offer_types(module_database))
    folder = Path(tmp_path_factory.mktemp("state"))
    file = folder / "policy.toml"
    file.write_text(POLICY)
    with running_api(module_database, folder, {"GPU_DEV_POLICY_FILE": str(file)}) as server:
        yield server


@pytest.fixture(scope="module")
def bob(make_person: Callable[..., Person]) -> Person:
    """Of whom the policy says nothing."""
    return make_person("bob")


def test_more_than_the_quota_at_once_is_refused_with_the_numbers(ada: Person) -> None:
    refused = ada.submit(gpu_count=4)
    assert (refused.status, refused.json["code"]) == (409, "quota_exceeded")
    assert refused.json["detail"].startswith("4 t4 GPUs are more than your quota of 2 at once.")


def test_too_many_that_wait_are_refused_and_a_repeat_is_not(ada: Person) -> None:
    first = ada.submit(key="one")
    assert [first.status, ada.submit(key="two").status] == [200, 200]
    refused = ada.submit(key="three")
    assert (refused.status, refused.json["code"]) == (409, "quota_exceeded")
    assert ada.submit(key="one").json["job_id"] == first.json["job_id"]


def test_too_many_hours_are_refused_with_what_is_left(eve: Person) -> None:
    assert eve.submit(gpu_count=1, duration_hours=3).status == 200
    refused = eve.submit(gpu_count=2, duration_hours=1)
    assert (refused.status, refused.json["code"]) == (409, "quota_exceeded")
    assert "3.0 of your 4 in 7 days" in refused.json["detail"]
    assert refused.json["hint"] == "Ask for 0.5 hours at most with --hours."


@pytest.mark.parametrize("labels", [{"colour": "red"}, {"nsight": "maybe"}])
def test_labels_that_are_not_on_the_list_are_refused_with_those_that_are(
    bob: Person, labels: dict[str, str]
) -> None:
    for path in ("submit", "preview"):
        body = {"gpu_type": "t4", "gpu_count": 1, "duration_hours": 1, "node_labels": labels}
        refused = bob.call("POST", f"/v1/jobs/{path}", body)
        assert (refused.status, refused.json["code"]) == (400, "unknown_node_label")
        assert "nsight=true" in refused.json["hint"]


def test_preview_looks_only_at_nodes_that_have_the_labels(bob: Person, module_database: str) -> None:
    async def set_rooms(*rooms: NodeRoom) -> None:
        async with open_test_stores(module_database) as stores, stores.admissions.lock("t4") as transaction:
            await transaction.set_rooms(rooms)

    wish = {"gpu_type": "t4", "gpu_count": 1, "duration_hours": 1, "node_labels": {"nsight": "true"}}
    asyncio.run(set_rooms(NodeRoom(NodeName("t4-0"), 4)))
    assert bob.call("POST", "/v1/jobs/preview", wish).json["reason"] == "no_nodes"
    asyncio.run(
        set_rooms(NodeRoom(NodeName("t4-0"), 4), NodeRoom(NodeName("t4-1"), 4, 0, {"nsight": "true"}))
    )
    assert bob.call("POST", "/v1/jobs/preview", wish).json["starts_now"] is True
    assert bob.submit(node_labels={"nsight": "true"}).status == 200
