"""Submits of several whole nodes: what is taken, what is refused with which words."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.api.conftest import Person, offer_types
from tests.support.api_server import ApiServer, running_api

FLEET = """
[[nodes]]
type = "a100"
count = 3
gpus = 2

[[nodes]]
type = "h100"

[[nodes]]
type = "t4"
count = 2

[[nodes]]
type = "cpu-x86"
count = 2
"""


@pytest.fixture(scope="module")
def api_server(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """With three a100 nodes of two GPUs, and types that cannot be gangs: too few nodes, or never."""
    asyncio.run(offer_types(module_database))
    folder = Path(tmp_path_factory.mktemp("state"))
    (folder / "fleet.toml").write_text(FLEET)
    settings = {"GPU_DEV_FLEET": str(folder / "fleet.toml")}
    with running_api(module_database, folder, settings) as server:
        yield server


def test_a_gang_is_taken(ada: Person) -> None:
    answer = ada.submit(gpu_type="A100", gpu_count=4, distributed=True)
    assert answer.status == 200, answer.text
    assert answer.json["message"] == "Asked for 4 a100 GPUs on 2 nodes."
    job = ada.get(answer.json["job_id"])
    assert (job["gpu_count"], job["status"]) == (4, "pending")
    assert "nodes" not in job, "it has no place yet"


def test_the_same_request_again_is_the_same_gang(ada: Person) -> None:
    gang = {"gpu_type": "a100", "gpu_count": 6, "distributed": True}
    first, again = (ada.submit("gang", **gang) for _ in range(2))
    assert first.json["job_id"] == again.json["job_id"]
    other = ada.submit("gang", **{**gang, "gpu_count": 4})
    assert (other.status, other.json["code"]) == (409, "idempotency_key_reused")


@pytest.mark.parametrize(
    "body, code, hint",
    [
        pytest.param({"gpu_count": 4}, "distributed_not_said", "Add --distributed", id="not said"),
        pytest.param({"gpu_count": 3, "distributed": True}, "bad_gpu_count", "4 or 6", id="not whole"),
        pytest.param({"gpu_count": 2, "distributed": True}, "bad_gpu_count", "4 or 6", id="one node"),
        pytest.param({"gpu_count": 8, "distributed": True}, "too_many_gpus", "4 or 6", id="too many"),
        pytest.param(
            {"gpu_type": "h100", "gpu_count": 16, "distributed": True},
            "no_multinode",
            "gpu-dev avail",
            id="the only node of its type",
        ),
        pytest.param(
            {"gpu_type": "t4", "gpu_count": 8, "distributed": True},
            "no_multinode",
            "gpu-dev avail",
            id="a type of single nodes",
        ),
        pytest.param(
            {"gpu_type": "cpu-x86", "gpu_count": 0, "distributed": True},
            "no_multinode",
            "gpu-dev avail",
            id="a CPU type",
        ),
        pytest.param(
            {"gpu_count": 4, "distributed": True, "env_vars": {"RANK": "7"}},
            "reserved_env_var",
            "Leave it out",
            id="a variable of the gang's",
        ),
    ],
)
def test_what_is_no_gang_is_refused_with_what_would_be(
    ada: Person, body: dict[str, Any], code: str, hint: str
) -> None:
    answer = ada.submit(**{"gpu_type": "a100", **body})
    assert (answer.status, answer.json["code"]) == (400, code), answer.text
    assert hint in answer.json["hint"]


def test_a_reservation_of_one_node_may_have_these_variables(ada: Person) -> None:
    assert ada.submit(env_vars={"RANK": "7", "MASTER_PORT": "1"}).status == 200


def test_clients_of_0_3_have_no_word_for_a_gang_and_are_told_how_many_they_may_have(ada: Person) -> None:
    variables = {"GPU_TYPE": "a100", "GPU_COUNT": "4", "POD_NAME": "run - Node 1/2", "GITHUB_USER": "ada"}
    answer = ada.call("POST", "/v1/jobs/submit", {"duration_hours": 1, "env_vars": variables})
    assert (answer.status, answer.json["code"]) == (400, "distributed_not_said")
    assert "at most 2" in answer.json["hint"]
