"""Who asks too often is told when to come back; the others notice nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gpudev.app.identity.authentication import KeyScreen
from gpudev.app.limits import Limiter
from gpudev.bootstrap.foundation import SystemClock
from gpudev.domain.errors import TooManyRequests
from gpudev.domain.limits import Rate
from gpudev.ports.users import ShownKey
from tests.integration.api.conftest import Person, offer_types
from tests.integration.api.test_access import log_in
from tests.support.api_server import Answer, ApiServer, running_api
from tests.support.reservations import open_test_stores

FAILURES = 3
BURST = 5
WRONG_KEYS = 4
LIMITS = {
    "GPU_DEV_LOGIN_FAILURES": str(FAILURES),
    "GPU_DEV_REQUESTS_PER_SECOND": "0.01",
    "GPU_DEV_REQUEST_BURST": str(BURST),
    "GPU_DEV_WRONG_KEYS_PER_MINUTE": str(WRONG_KEYS),
    "GPU_DEV_TRUSTED_PROXIES": "127.0.0.0/8, 10.9.0.0/16",
}


@pytest.fixture(scope="module")
def api_server(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """The tests come through a trusted proxy, so each can have an address of its own."""
    asyncio.run(offer_types(module_database))
    with running_api(module_database, Path(tmp_path_factory.mktemp("state")), LIMITS) as server:
        yield server


def is_limited(answer: Answer) -> bool:
    if answer.status != 429:
        return False
    assert int(answer.headers["retry-after"]) >= 1
    assert {"detail", "code", "hint"} <= set(answer.json)
    return True


def fail_to_log_in(server: ApiServer, address: str) -> Answer:
    body = {"timestamp": 0, "nonce": "n", "proof": "p"}
    return server.call("POST", "/v1/auth/local-login", body, X_Forwarded_For=address)


def test_logins_that_fail_too_often_are_stopped_for_that_address_alone(api_server: ApiServer) -> None:
    for _ in range(FAILURES):
        assert fail_to_log_in(api_server, "192.0.2.1").status == 401
    stopped = fail_to_log_in(api_server, "192.0.2.1")
    assert is_limited(stopped)
    assert stopped.json["code"] == "too_many_failed_logins"
    assert fail_to_log_in(api_server, "192.0.2.2").status == 401
    # What a caller writes before the address that our own proxy saw is not believed.
    assert is_limited(fail_to_log_in(api_server, "198.51.100.7, 192.0.2.1"))
    assert is_limited(fail_to_log_in(api_server, "192.0.2.1, 10.9.0.4"))


def test_a_whole_ipv6_network_counts_as_one_address(api_server: ApiServer) -> None:
    for number in range(FAILURES):
        assert fail_to_log_in(api_server, f"2001:db8::{number + 1}").status == 401
    assert is_limited(fail_to_log_in(api_server, "2001:db8::ffff"))
    assert fail_to_log_in(api_server, "2001:db8:0:1::1").status == 401


def test_logins_that_succeed_are_not_counted(api_server: ApiServer) -> None:
    assert [log_in(api_server).status for _ in range(FAILURES + 1)] == [200] * (FAILURES + 1)


def test_a_key_that_asks_too_often_is_stopped_and_no_other(make_person: Callable[..., Person]) -> None:
    busy, calm = make_person("busybody"), make_person("calmest")
    assert [busy.call("GET", "/v1/me").status for _ in range(BURST)] == [200] * BURST
    assert is_limited(busy.call("GET", "/v1/me"))
    assert calm.call("GET", "/v1/me").status == 200


def test_wrong_keys_are_limited_by_address_and_stop_nobody_with_a_good_one(
    api_server: ApiServer, make_person: Callable[..., Person]
) -> None:
    def try_key(number: int, address: str) -> Answer:
        return api_server.call("GET", "/v1/me", key=f"guess-{number}", X_Forwarded_For=address)

    assert [try_key(number, "192.0.2.9").status for number in range(WRONG_KEYS)] == [401] * WRONG_KEYS
    assert is_limited(try_key(99, "192.0.2.9"))
    assert try_key(99, "192.0.2.10").status == 401
    neighbour = make_person("neighbour")
    assert neighbour.call("GET", "/v1/me", X_Forwarded_For="192.0.2.9").status == 200


@pytest.fixture(scope="module")
def without_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API whose database never answers: what it answers, it knows by itself."""
    with running_api(
        "postgresql://nobody@127.0.0.1:1/none", Path(tmp_path_factory.mktemp("alone"))
    ) as server:
        yield server


@pytest.mark.parametrize("key", ["short", "with space in it", "k" * 5000, "naïve-key-of-ada", "key.of.ada"])
def test_what_cannot_be_a_key_is_rejected_without_the_database(without_database: ApiServer, key: str) -> None:
    answer = without_database.call("GET", "/v1/me", key=key)
    assert (answer.status, answer.json["code"]) == (401, "unauthenticated")
    assert without_database.call("GET", "/v1/me", key="key-of-ada").status == 503


def test_a_key_that_was_wrong_before_is_limited_without_the_database(module_database: str) -> None:
    async def guess() -> None:
        clock, wrong = SystemClock(), ShownKey(b"wrong", datetime.now(UTC))
        async with open_test_stores(module_database) as stores:
            screen = KeyScreen(stores.users, Limiter(Rate(0.001, 1), clock, "too_many_wrong_keys"))
            screen.note_wrong(wrong, "192.0.2.20")
        # The connections to the database are closed by now.
        with pytest.raises(TooManyRequests):
            await screen.check(wrong, "192.0.2.20")
        await screen.check(wrong, "192.0.2.21")
        screen.note_good(wrong)
        await screen.check(wrong, "192.0.2.20")

    asyncio.run(guess())
