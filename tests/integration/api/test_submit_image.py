"""An image of one's own, where the cluster can run it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpudev.api.submit_0_3 import NO_CUSTOM_IMAGE, read_0_3
from gpudev.domain.names import UserId
from gpudev.ports.users import User
from gpudev.wire.jobs import SubmitRequest03
from tests.integration.api.conftest import Person, offer_types
from tests.support.api_server import ApiServer, running_api
from tests.support.reservations import NOON, open_test_stores

ADA = User(UserId(1), "ada")
IMAGE = "registry.example/team/image:1"


@pytest.fixture(scope="module")
def api_server(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    asyncio.run(offer_types(module_database))
    state_dir = Path(tmp_path_factory.mktemp("state"))
    with running_api(module_database, state_dir, {"GPU_DEV_CLUSTER": "kubernetes"}) as server:
        yield server


async def read_image(dsn: str, reservation: str) -> str:
    async with open_test_stores(dsn) as stores:
        query = "SELECT image FROM reservations WHERE reservation_id = $1"
        return str(await stores.database.fetch_value(query, reservation))


def test_an_image_is_kept_with_the_reservation(ada: Person, module_database: str) -> None:
    answer = ada.submit(image=IMAGE)
    assert answer.status == 200, answer.text
    assert asyncio.run(read_image(module_database, answer.json["job_id"])) == IMAGE


def test_a_client_of_0_3_can_ask_for_one_as_well() -> None:
    variables = {"GPU_TYPE": "t4", "GPU_COUNT": "1"}
    asked = SubmitRequest03(duration_hours=1, env_vars=variables, image=IMAGE)
    assert read_0_3(asked, ADA, NOON, frozenset({"image"})).settings.image == IMAGE
    standard = replace(asked, image=NO_CUSTOM_IMAGE)
    assert read_0_3(standard, ADA, NOON, frozenset({"image"})).settings.image == ""


def test_what_is_no_name_of_an_image_is_refused(ada: Person) -> None:
    answer = ada.submit(image="no such name")
    assert (answer.status, answer.json["code"]) == (400, "bad_image")


def test_the_same_request_with_another_image_is_another_request(ada: Person) -> None:
    assert ada.submit(key="one", image=IMAGE).status == 200
    assert ada.submit(key="one", image="debian").json["code"] == "idempotency_key_reused"


def test_what_nobody_can_do_yet_is_still_refused(ada: Person) -> None:
    assert ada.submit(image=IMAGE, command="x").json["detail"] == "Not supported yet: command. Leave it out."
