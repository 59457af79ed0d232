"""Who may call what: without a key, with somebody else's, and how a local login is proved."""

from __future__ import annotations

import hashlib
import hmac
import time
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.integration.api.conftest import Person
from tests.support.api_server import Answer, ApiServer


def log_in(server: ApiServer, **changes: Any) -> Answer:
    """What the client sends, with something wrong if asked."""
    secret = changes.get("secret", server.state.read_login_secret())
    timestamp = changes.get("timestamp", int(time.time()))
    nonce = changes.get("nonce", uuid.uuid4().hex)
    text = f"{timestamp}\n{nonce}\n{changes.get('host', server.authority)}"
    proof = hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()
    return server.call(
        "POST", "/v1/auth/local-login", {"timestamp": timestamp, "nonce": nonce, "proof": proof}
    )


@pytest.mark.parametrize("key", [None, "nonsense"])
def test_who_has_no_good_key_is_told_what_to_do(api_server: ApiServer, key: str | None) -> None:
    """For every route, `test_authorisation` asks."""
    answer = api_server.call("GET", "/v1/jobs", key=key)
    assert (answer.status, answer.json["code"]) == (401, "unauthenticated")
    assert answer.json["hint"]


def test_an_expired_key_is_no_key(make_person: Callable[..., Person]) -> None:
    late = make_person("late", life=timedelta(seconds=-1))
    assert late.call("GET", "/v1/me").status == 401


def test_a_disabled_user_is_turned_away(make_person: Callable[..., Person]) -> None:
    answer = make_person("mallory", is_active=False).call("GET", "/v1/me")
    assert (answer.status, answer.json["code"]) == (403, "not_allowed")


def test_another_users_job_does_not_exist(ada: Person, eve: Person) -> None:
    job_id = ada.submit(name="adas-own").json["job_id"]
    operation = ada.call("POST", f"/v1/jobs/{job_id}/cancel").json["operation_id"]
    for path in (f"/v1/jobs/{job_id}", f"/v1/jobs/{job_id[:8]}", "/v1/jobs/adas-own"):
        assert eve.call("GET", path).status == 404
        assert eve.call("GET", f"{path}/events").status == 404
        assert eve.call("POST", f"{path}/cancel").status == 404
    assert eve.call("GET", f"/v1/operations/{operation}").status == 404
    assert job_id not in eve.call("GET", "/v1/jobs").text
    assert ada.call("GET", f"/v1/operations/{operation}").json["status"] == "requested"


def test_a_local_login_gives_a_key_that_works(api_server: ApiServer) -> None:
    answer = log_in(api_server)
    assert answer.status == 200
    key = answer.json["api_key"]
    assert answer.json["key_prefix"] == key[:8]
    me = api_server.call("GET", "/v1/me", key=key)
    assert me.json["username"] == answer.json["username"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"secret": b"guessed"}, id="wrong-secret"),
        pytest.param({"timestamp": int(time.time()) - 3600}, id="too-old"),
        pytest.param({"timestamp": int(time.time()) + 3600}, id="from-the-future"),
        pytest.param({"host": "evil.example:80"}, id="meant-for-another-server"),
    ],
)
def test_a_wrong_proof_is_refused(api_server: ApiServer, change: dict[str, Any]) -> None:
    assert log_in(api_server, **change).status == 401


def test_a_proof_works_once(api_server: ApiServer) -> None:
    once = {"nonce": "same", "timestamp": int(time.time())}
    assert log_in(api_server, **once).status == 200
    assert log_in(api_server, **once).status == 401


@pytest.mark.parametrize("timestamp", [-(2**63), 2**63, 10**30])
def test_an_impossible_time_is_refused_and_breaks_nothing(api_server: ApiServer, timestamp: int) -> None:
    assert log_in(api_server, timestamp=timestamp).status in {401, 422}
