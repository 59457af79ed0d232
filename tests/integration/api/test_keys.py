"""One's own API keys over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.api.conftest import Person, offer_types
from tests.support.api_server import ApiServer, running_api


@pytest.fixture(scope="module")
def api_server(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A rotated key ends at once here, so that no test has to wait for it."""
    asyncio.run(offer_types(module_database))
    state = Path(tmp_path_factory.mktemp("state"))
    with running_api(module_database, state, {"GPU_DEV_KEY_OVERLAP_SECONDS": "0"}) as server:
        yield server


def with_key(person: Person, key: str) -> Person:
    return Person(person.server, person.username, key)


def test_a_rotated_key_works_and_the_old_one_ends(make_person: Callable[..., Person]) -> None:
    old = make_person("rotating")
    answer = old.call("POST", "/v1/keys/rotate")
    assert answer.status == 200
    assert answer.headers["cache-control"] == "no-store"
    assert set(answer.json) == {"api_key", "key_prefix", "user_id", "username", "expires_at"}
    assert answer.json["key_prefix"] == answer.json["api_key"][:8]
    new = with_key(old, answer.json["api_key"])
    assert new.call("GET", "/v1/me").json["username"] == "rotating"
    assert old.call("GET", "/v1/me").status == 401
    assert old.call("POST", "/v1/keys/rotate").status == 401


def test_keys_are_listed_without_their_secret(make_person: Callable[..., Person]) -> None:
    person = make_person("listing")
    rotated = person.call("POST", "/v1/keys/rotate").json
    answer = with_key(person, rotated["api_key"]).call("GET", "/v1/keys")
    new, old = answer.json["keys"]
    assert (new["key_prefix"], new["is_active"], new["is_current"]) == (rotated["key_prefix"], True, True)
    assert (old["key_prefix"], old["is_active"], old["is_current"]) == (person.key[:8], False, False)
    assert not {"key_hash", "api_key"} & {*new, *old}
    assert rotated["api_key"] not in answer.text


def test_revoking_is_the_same_twice_and_only_for_ones_own(
    make_person: Callable[..., Person], ada: Person
) -> None:
    person = make_person("revoking")
    new = with_key(person, person.call("POST", "/v1/keys/rotate").json["api_key"])
    path = f"/v1/keys/{person.key[:8]}"
    for _ in range(2):
        answer = new.call("DELETE", path)
        assert (answer.status, answer.json["key_prefix"]) == (200, person.key[:8])
    assert ada.call("DELETE", f"/v1/keys/{new.key[:8]}").status == 404
    assert new.call("DELETE", f"/v1/keys/{new.key[:8]}").status == 200
    assert new.call("GET", "/v1/me").status == 401


@pytest.mark.parametrize("prefix", ["unknown1", "short", "much-too-long", "a%00bcdefg", "%20%20%20"])
def test_what_is_no_key_of_ones_own_is_404(ada: Person, prefix: str) -> None:
    answer = ada.call("DELETE", f"/v1/keys/{prefix}")
    assert (answer.status, answer.json["code"]) == (404, "not_found")
