"""Free text in requests: what is too long or hidden is refused with one sentence, on every route."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gpudev.domain.reservation import Reservation
from tests.integration.api.conftest import Person
from tests.support.active import make_active
from tests.support.reservations import open_test_stores

HOSTILE = {
    "too long": "x" * 20_000,
    "nul": "a\0b",
    "clears the screen": "\x1b[2J",
    "c1": "\x9b2J",
    "reverses": "\u202egpj",
    "half a pair": "\ud800",
}


@pytest.fixture(scope="module")
def active(ada: Person, module_database: str) -> Reservation:
    async def run() -> Reservation:
        async with open_test_stores(module_database) as stores:
            return await make_active(stores, await stores.users.upsert(ada.username))

    return asyncio.run(run())


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_the_reason_to_keep_a_server_is_one_printable_line(
    ada: Person, active: Reservation, text: str
) -> None:
    answer = ada.call("POST", f"/v1/jobs/{active.id}/keep", {"hours": 1, "reason": text})
    assert (answer.status, answer.json["code"]) == (400, "bad_text")
    assert answer.json["detail"].startswith("reason must be at most 500 printable characters. ")
    assert text not in answer.text


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize(
    "path, body",
    [
        ("/v1/jobs/submit", {"gpu_type": "t4", "gpu_count": 1, "duration_hours": 1, "name": ...}),
        ("/v1/jobs/submit", {"gpu_type": ..., "gpu_count": 1, "duration_hours": 1}),
        ("/v1/jobs/submit", {"duration_hours": 1, "env_vars": {"GPU_TYPE": "t4"}, "disk_name": ...}),
        ("/v1/disks", {"disk_name": ...}),
        ("/v1/disks/work/rename", {"new_name": ...}),
        ("/v1/auth/local-login", {"timestamp": 1, "nonce": ..., "proof": "x"}),
        ("/v1/auth/local-login", {"timestamp": 1, "nonce": "x", "proof": ...}),
        ("/v1/auth/github-challenge", {"sts_request": {"url": ..., "headers": {}, "body": ""}}),
    ],
    ids=["name", "type", "0.3", "disk", "new name", "nonce", "proof", "sts"],
)
def test_every_route_refuses_such_text(ada: Person, path: str, body: dict[str, Any], text: str) -> None:
    answer = ada.call("POST", path, _put(body, text))
    assert (answer.status, answer.json["code"]) == (400, "bad_text")


def test_nothing_is_found_by_such_a_name(ada: Person) -> None:
    for path in ("/v1/jobs/%00abc", "/v1/disks/%e2%80%ae", f"/v1/jobs/{'x' * 300}"):
        answer = ada.call("GET", path)
        assert (answer.status, answer.json["code"]) == (404, "not_found"), path
        assert "not found" in answer.json["detail"]


def test_queries_refuse_it_as_well(ada: Person) -> None:
    answer = ada.call("GET", "/v1/jobs?gpu_type=%1b%5b2J")
    assert (answer.status, answer.json["code"]) == (400, "bad_text")


def test_text_in_any_script_is_accepted(ada: Person, active: Reservation) -> None:
    reason = "Zoë trainiert 👩\u200d🔬 訓練"
    answer = ada.call("POST", f"/v1/jobs/{active.id}/keep", {"hours": 1, "reason": reason})
    assert answer.status == 200


def _put(body: Any, text: str) -> Any:
    if body is ...:
        return text
    return {name: _put(value, text) for name, value in body.items()} if isinstance(body, dict) else body
