"""Asking the SSH proxy for a tunnel: redirects lead to the same proxy, or nowhere."""

from __future__ import annotations

import pytest

from gpudev.client.errors import NotFound, Unreachable
from gpudev.client.session import connect
from gpudev.client.tunnel import open_tunnel
from tests.support.fake_api import FakeApi, Reply, running_fake_api
from tests.unit.client.conftest import Home

PATH = "/v1/jobs/train/ssh"


def test_a_redirect_within_the_proxy_is_followed_with_the_key(api: FakeApi, home: Home) -> None:
    api.on("GET", PATH, Reply(307, {}, headers={"Location": "/moved?node=1"}))
    with connect(home.surroundings) as client, pytest.raises(NotFound, match="/moved"):
        open_tunnel(client, "/", "train", 1)
    [asked] = api.seen("GET", "/moved")
    assert asked.path == "/moved?node=1"
    assert asked.headers["authorization"] == "Bearer key-1"
    assert asked.headers["upgrade"] == "websocket"


def test_the_key_is_not_sent_to_another_proxy(api: FakeApi, home: Home) -> None:
    with running_fake_api() as other, connect(home.surroundings) as client:
        api.on("GET", PATH, Reply(308, {}, headers={"Location": f"{other.url}{PATH}"}))
        with pytest.raises(Unreachable, match="Your API key was not sent there"):
            open_tunnel(client, "/", "train", 0)
        assert other.requests == []
