"""Quotas without a policy file: on where there are several users, off for the sole owner of a machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpudev.domain.capacity import Availability
from tests.integration.api.conftest import Person, offer_types
from tests.support.api_server import ApiServer, running_api
from tests.support.reservations import NOON, open_test_stores

AT_ONCE = 35
BURST = 45
DAY = {"gpu_count": 4, "duration_hours": 24}


@pytest.fixture(scope="module")
def api_server(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    asyncio.run(offer_types(module_database))
    folder = Path(tmp_path_factory.mktemp("state"))
    # More than one user may log in.
    settings = {"ALLOWED_AWS_ACCOUNTS": "123456789012", "GPU_DEV_SUBMIT_BURST": str(BURST)}
    with running_api(module_database, folder, settings) as server:
        yield server


@pytest.fixture(scope="module")
def grace(make_person: Callable[..., Person]) -> Person:
    return make_person("grace")


@pytest.mark.threat("one user fills the queue")
def test_one_user_cannot_fill_the_queue_however_many_submits_come_at_once(ada: Person, eve: Person) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(lambda number: ada.submit(key=f"one-{number}"), range(AT_ONCE)))
    assert sorted(answer.status for answer in answers) == [200] * 30 + [409] * 5
    (rejected, *_) = (answer for answer in answers if answer.status == 409)
    assert rejected.json["code"] == "quota_exceeded"
    hint = rejected.json["hint"]
    assert "gpu-dev list" in hint
    assert rejected.json["detail"] == f"30 of your requests wait for t4 GPUs; your quota is 30. {hint}"
    me = {quota["gpu_type"]: quota for quota in ada.call("GET", "/v1/me").json["quotas"]}
    assert (me["t4"]["waiting"], me["t4"]["max_waiting"]) == (30, 30)
    assert (me["t4"]["reserved_gpu_hours"], me["t4"]["max_reserved_gpu_hours"]) == (30, 768)
    assert eve.submit().status == 200


@pytest.mark.threat("one user submits and cancels without end")
def test_one_user_cannot_submit_without_end(make_person: Callable[..., Person], eve: Person) -> None:
    flood = make_person("flood")
    answers = [flood.submit(key=f"flood-{number}") for number in range(BURST + 10)]
    assert {answer.status for answer in answers[:BURST]} == {200, 409}
    refused = answers[-1]
    assert (refused.status, refused.json["code"]) == (429, "too_many_requests")
    assert int(refused.headers["retry-after"]) >= 1
    assert eve.submit(key="beside").status == 200


def test_the_share_of_long_reservations_is_shown_in_gpus(ada: Person, module_database: str) -> None:
    asyncio.run(offer_room(module_database, Availability("t4", 208, 208, 8, 26, 26, is_simulated=True)))
    me = {quota["gpu_type"]: quota for quota in ada.call("GET", "/v1/me").json["quotas"]}
    assert (me["t4"]["long_gpus"], me["t4"]["max_long_gpus"]) == (0, 16)


async def offer_room(database: str, availability: Availability) -> None:
    async with open_test_stores(database) as stores:
        await stores.nodes.set_availability(availability, "test", NOON)


def test_days_of_gpus_are_rejected_with_what_is_reserved_and_what_to_do(grace: Person) -> None:
    assert [grace.submit(**DAY).status for _ in range(8)] == [200] * 8
    rejected = grace.submit(**DAY)
    assert (rejected.status, rejected.json["code"]) == (409, "quota_exceeded")
    assert "768.0 of your 768 are reserved now" in rejected.json["detail"]
    assert rejected.json["hint"].startswith("Cancel one that you do not need any more")


def test_sole_owner_of_a_machine_has_no_quota(module_database: str, tmp_path: Path, grace: Person) -> None:
    with running_api(module_database, tmp_path, {}) as server:
        owner = Person(server, grace.username, grace.key)
        assert "quotas" not in owner.call("GET", "/v1/me").json
        assert [owner.submit(**DAY).status for _ in range(9)] == [200] * 9
