"""Homes where the cluster cannot mount disks: nothing is lost silently, and nothing is made in vain."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.api.conftest import Person, offer_types
from tests.support.api_server import ApiServer, running_api


@pytest.fixture(scope="module")
def api_server(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    asyncio.run(offer_types(module_database))
    state_dir = Path(tmp_path_factory.mktemp("state"))
    with running_api(module_database, state_dir, {"GPU_DEV_CLUSTER": "kubernetes"}) as server:
        yield server


def test_a_disk_that_is_named_is_refused(ada: Person) -> None:
    answer = ada.submit(disk_name="work")
    assert (answer.status, answer.json["code"]) == (400, "not_supported_yet")
    assert "--disk none" in answer.json["hint"]
    assert ada.call("GET", "/v1/disks").json["disks"] == []


def test_without_a_word_the_home_is_not_kept_which_is_said(ada: Person) -> None:
    answer = ada.submit(disk_name=None)
    assert answer.status == 200, answer.text
    assert "this home is not kept" in answer.json["warning"]
    assert "this home is not kept" in answer.json["message"]
    assert "disk_name" not in ada.call("GET", f"/v1/jobs/{answer.json['job_id']}").json
    assert ada.call("GET", "/v1/disks").json["disks"] == []


@pytest.mark.parametrize("asked", [{"disk_name": "none"}, {"disk_name": None, "no_persistent_disk": True}])
def test_who_asks_for_none_is_told_nothing(ada: Person, asked: dict[str, object]) -> None:
    answer = ada.submit(**asked)
    assert answer.status == 200, answer.text
    assert "warning" not in answer.json


def test_the_same_request_again_is_the_same_reservation(ada: Person) -> None:
    first, again = (ada.submit(key="one", disk_name=None) for _ in range(2))
    assert first.json["job_id"] == again.json["job_id"]
