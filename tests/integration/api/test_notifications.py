"""One's own choice of notifications, through a running API."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.api.conftest import Person, add_key, offer_types
from tests.support.api_server import running_api

KEY = "a" * 43
HOOK = "https://hooks.example.org/x"


@pytest.fixture(scope="module")
def person(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    asyncio.run(offer_types(module_database))
    state_dir = Path(tmp_path_factory.mktemp("state"))
    settings = {"GPU_DEV_NOTIFY_HOSTS": "hooks.example.org, 127.0.0.1:9"}
    with running_api(module_database, state_dir, settings) as server:
        asyncio.run(add_key(module_database, "ada", KEY))
        yield Person(server, "ada", KEY)


def test_a_choice_is_kept_and_its_secret_told_once(person: Person) -> None:
    path = "/v1/me/notifications"
    nothing = {"topics": [], "allowed_hosts": ["127.0.0.1:9", "hooks.example.org"]}
    assert person.call("GET", path).json == nothing
    chosen = person.call("PUT", path, {"url": HOOK, "topics": ["ends"]})
    assert (chosen.status, chosen.json["url"], chosen.json["topics"]) == (200, HOOK, ["ends"])
    assert len(chosen.json["secret"]) > 30
    assert "secret" not in person.call("GET", path).json
    again = person.call("PUT", path, {"url": HOOK})
    assert again.json["secret"] == chosen.json["secret"]
    assert len(again.json["topics"]) == 5
    assert person.call("POST", f"{path}/test").status == 200
    assert person.call("PUT", path, {}).json == nothing
    assert person.call("POST", f"{path}/test").status == 404


@pytest.mark.parametrize(
    "body, code",
    [
        ({"url": "https://elsewhere.example.org/x"}, "host_not_allowed"),
        ({"url": "http://hooks.example.org/x"}, "host_not_allowed"),
        ({"url": "https://hooks.example.org:8443/x"}, "host_not_allowed"),
        ({"url": "https://eve@hooks.example.org/x"}, "bad_address"),
        ({"url": HOOK, "kind": "pigeon"}, "bad_kind"),
        ({"url": HOOK, "topics": ["gossip"]}, "bad_topic"),
    ],
)
def test_what_may_not_be_is_refused(person: Person, body: dict[str, object], code: str) -> None:
    refused = person.call("PUT", "/v1/me/notifications", body)
    assert (refused.status, refused.json["code"]) in {(400, code), (400, "bad_address")}
