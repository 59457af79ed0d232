"""One's own keys through the client."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gpudev.client.errors import TooManyRequests
from gpudev.client.session import connect
from tests.support.fake_api import FakeApi, Reply
from tests.unit.client.conftest import Home

SOON = (datetime.now(UTC) + timedelta(hours=2)).isoformat()
ROTATED = {
    "api_key": "key-rotated",
    "key_prefix": "key-rota",
    "user_id": 1,
    "username": "ada",
    "expires_at": SOON,
}
WHO = {"user_id": 1, "username": "ada"}


def test_a_rotated_key_is_used_from_then_on_and_kept(api: FakeApi, home: Home) -> None:
    api.on("POST", "/v1/keys/rotate", Reply(body=ROTATED))
    api.on("GET", "/v1/me", Reply(body=WHO))
    with connect(home.surroundings) as client:
        assert client.rotate_key().key_prefix == "key-rota"
        client.whoami()
    with connect(home.surroundings) as another:
        another.whoami()
    assert [seen.headers["authorization"] for seen in api.seen("GET", "/v1/me")] == ["Bearer key-rotated"] * 2
    assert len(api.seen("POST", "/v1/auth/local-login")) == 1


def test_keys_are_listed_and_revoked(api: FakeApi, home: Home) -> None:
    key = {
        "key_prefix": "abcd1234",
        "created_at": SOON,
        "expires_at": SOON,
        "is_active": True,
        "is_current": True,
    }
    api.on("GET", "/v1/keys", Reply(body={"keys": [key]}))
    api.on("DELETE", "/v1/keys/abcd1234", Reply(body={"key_prefix": "abcd1234", "message": "Revoked."}))
    with connect(home.surroundings) as client:
        (listed,) = client.list_keys().keys
        assert listed.last_used_at is None
        assert client.revoke_key(listed.key_prefix).message == "Revoked."


def test_asking_too_often_is_an_error_of_its_own(api: FakeApi, home: Home) -> None:
    api.on("GET", "/v1/me", Reply(429, {"detail": "Too often.", "code": "too_many_requests", "hint": ""}))
    with connect(home.surroundings) as client, pytest.raises(TooManyRequests, match="Too often"):
        client.whoami()
