"""Nodes over HTTP: what admins see, how one is drained and put back, and what its owner reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpudev.domain.capacity import Node
from gpudev.domain.names import NodeName
from gpudev.domain.reservation import Reservation
from tests.integration.api.conftest import Person, offer_types
from tests.support.active import make_active
from tests.support.api_server import ApiServer, running_api
from tests.support.reservations import open_test_stores

FLEET = tuple(Node(NodeName(f"t4-{number}"), "t4", 4, 4) for number in range(2))


@pytest.fixture(scope="module")
def api_server(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    asyncio.run(offer_types(module_database))
    settings = {"GPU_DEV_ADMINS": "local:grace"}
    with running_api(module_database, Path(tmp_path_factory.mktemp("state")), settings) as server:
        yield server


@pytest.fixture(scope="module")
def grace(make_person: Callable[..., Person]) -> Person:
    return make_person("grace")


@pytest.fixture(scope="module")
def active(ada: Person, module_database: str) -> Reservation:
    """On t4-0, of two nodes that a pass of admission has seen."""

    async def run() -> Reservation:
        async with open_test_stores(module_database) as stores:
            async with stores.admissions.lock("t4") as transaction:
                await transaction.set_nodes(FLEET)
            return await make_active(stores, await stores.users.upsert(ada.username))

    return asyncio.run(run())


def list_nodes(admin: Person) -> dict[str, dict[str, Any]]:
    return {node["name"]: node for node in admin.call("GET", "/v1/admin/nodes").json["nodes"]}


def test_a_node_is_drained_and_put_back(grace: Person, ada: Person, active: Reservation) -> None:
    assert {name: node["state"] for name, node in list_nodes(grace).items()} == {
        "t4-0": "in_service",
        "t4-1": "in_service",
    }
    drained = grace.call("POST", "/v1/admin/nodes/t4-0/drain", {"reason": "new fans"})
    assert drained.status == 200
    assert drained.json["message"].startswith("Node t4-0 is being drained: nothing new is placed there. ")
    node = list_nodes(grace)["t4-0"]
    assert node == drained.json["node"]
    assert (node["state"], node["reason"], node["drained_by"]) == ("draining", "new fans", "grace")
    [there] = node["reservations"]
    assert (there["job_id"], there["user"], there["status"]) == (active.id, "ada", "active")

    refused = ada.call("POST", f"/v1/jobs/{active.id}/extend", {"extension_hours": 1})
    assert (refused.status, refused.json["code"]) == (409, "node_is_leaving")
    assert refused.json["detail"].startswith("Node t4-0 is being taken out of service: new fans. ")

    back = grace.call("POST", "/v1/admin/nodes/t4-0/undrain")
    assert (back.status, back.json["node"]["state"]) == (200, "in_service")
    again = grace.call("POST", "/v1/admin/nodes/t4-0/undrain")
    assert again.json["message"] == "Node t4-0 was not drained."
    assert ada.call("POST", f"/v1/jobs/{active.id}/extend", {"extension_hours": 1}).status == 200
    entries = grace.call("GET", "/v1/admin/audit?user=grace&limit=500").json["entries"]
    written = [(entry["action"], entry["target"], entry["detail"]) for entry in reversed(entries)]
    assert [entry for entry in written if "drain" in entry[0]] == [
        ("drain_node", "t4-0", "new fans"),
        ("undrain_node", "t4-0", ""),
        ("undrain_node", "t4-0", ""),
    ]


@pytest.mark.usefixtures("active")
def test_an_empty_node_is_drained_at_once(grace: Person) -> None:
    answer = grace.call("POST", "/v1/admin/nodes/t4-1/drain", {}).json
    assert answer["node"]["state"] == "drained"
    assert answer["message"] == "Node t4-1 is drained: nothing runs there, and nothing is placed there."


@pytest.mark.usefixtures("active")
def test_an_unknown_node_is_answered_with_those_there_are(grace: Person) -> None:
    for verb, body in (("drain", {}), ("undrain", None)):
        answer = grace.call("POST", f"/v1/admin/nodes/t4-9/{verb}", body)
        assert answer.status == 404
        assert answer.json["detail"] == f'There is no node "t4-9". {answer.json["hint"]}'
        assert answer.json["hint"] == "Nodes: t4-0, t4-1."


@pytest.mark.usefixtures("active")
def test_a_reason_that_is_no_line_of_text_is_refused(grace: Person) -> None:
    answer = grace.call("POST", "/v1/admin/nodes/t4-0/drain", {"reason": "a\u001b[2Jb"})
    assert (answer.status, answer.json["code"]) == (400, "bad_reason")
    assert list_nodes(grace)["t4-0"]["state"] == "in_service"
