"""Redirects: followed within the server's own origin, and never with the key to anybody else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpudev.client.errors import Unreachable
from gpudev.client.http import Http, Request
from gpudev.client.redirects import choose_method, find_target
from tests.support.fake_api import FakeApi, Reply, running_fake_api

KEY = {"Authorization": "Bearer secret-key"}


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with running_fake_api() as api:
        yield api


def redirect(location: str, status: int = 308) -> Reply:
    return Reply(status, headers={"Location": location})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_the_same_server_is_asked_again_with_the_key(api: FakeApi, status: int) -> None:
    api.on("GET", "/v1/jobs", redirect("/v2/jobs?limit=1", status))
    api.on("GET", "/v2/jobs", Reply(body={"moved": True}))
    with Http(api.url) as http:
        answer = http.send(Request("GET", "/v1/jobs", headers=KEY))
    assert (answer.status, answer.body) == (200, b'{"moved": true}')
    assert api.requests[-1].path == "/v2/jobs?limit=1"
    assert api.requests[-1].headers["authorization"] == KEY["Authorization"]


@pytest.mark.parametrize(
    "status, method, body",
    [(307, "POST", b"{}"), (308, "POST", b"{}"), (303, "GET", b""), (302, "GET", b"")],
)
def test_a_post_is_posted_again_only_where_the_status_says_so(
    api: FakeApi, status: int, method: str, body: bytes
) -> None:
    api.on("POST", "/v1/jobs/submit", redirect("/there", status))
    for each in ("GET", "POST"):
        api.on(each, "/there", Reply(body={}))
    with Http(api.url) as http:
        assert http.send(Request("POST", "/v1/jobs/submit", b"{}", KEY)).status == 200
    assert (api.requests[-1].method, api.requests[-1].body) == (method, body)


def test_addresses_with_a_path_of_their_own_are_kept(api: FakeApi) -> None:
    api.on("GET", "/base/v1/me", redirect("me/", 307))
    api.on("GET", "/base/v1/me/", Reply(body={}))
    with Http(f"{api.url}/base") as http:
        assert http.send(Request("GET", "/v1/me")).status == 200


def test_the_key_is_not_sent_to_another_server(api: FakeApi) -> None:
    with running_fake_api() as other, Http(api.url) as http:
        api.on("GET", "/v1/me", redirect(f"{other.url}/v1/me"))
        with pytest.raises(Unreachable, match="Your API key was not sent there") as moved:
            http.send(Request("GET", "/v1/me", headers=KEY))
        assert other.requests == []
    assert moved.value.code == "server_moved"
    assert moved.value.hint.endswith(f"gpu-dev config set api_url {other.url}")


def test_streams_follow_as_well(api: FakeApi) -> None:
    api.on("GET", "/v1/jobs/x/events", redirect("/elsewhere"))
    api.on("GET", "/elsewhere", Reply(stream="id: 1\n\n"))
    request = Request("GET", "/v1/jobs/x/events", headers=KEY)
    with Http(api.url) as http, http.stream(request, 30) as stream:
        assert list(stream.lines()) == ["id: 1", ""]


def test_a_circle_has_an_end(api: FakeApi) -> None:
    api.on("GET", "/v1/me", redirect("/v1/me"))
    with Http(api.url) as http:
        with pytest.raises(Unreachable, match="more than 5 times"):
            http.send(Request("GET", "/v1/me"))
        with pytest.raises(Unreachable, match="more than 5 times"), http.stream(Request("GET", "/v1/me"), 30):
            pass
    assert len(api.requests) == 12


@pytest.mark.parametrize(
    "location, code",
    [
        ("http://x.org/a", "bad_redirect"),
        ("https://x.org:8443/a", "server_moved"),
        ("https://y.org/a", "server_moved"),
        ("//y.org/a", "server_moved"),
        ("https://x.org@y.org/", "server_moved"),
        ("file:///etc/passwd", "bad_redirect"),
        ("https://x.org:99999/", "server_moved"),
    ],
)
def test_every_other_origin_is_another_server(location: str, code: str) -> None:
    with pytest.raises(Unreachable) as refused:
        find_target("https://x.org/v1/me", location)
    assert refused.value.code == code


@pytest.mark.parametrize(
    "location, target",
    [("/a?b=c#d", "/a?b=c"), ("https://x.org:443/a", "/a"), ("https://X.org", "/"), ("?b", "/v1/me?b")],
)
def test_its_own_origin_may_be_written_in_several_ways(location: str, target: str) -> None:
    assert find_target("https://x.org/v1/me", location) == target


@pytest.mark.parametrize(
    "status, method, after",
    [
        (301, "POST", "GET"),
        (302, "DELETE", "DELETE"),
        (303, "DELETE", "GET"),
        (303, "HEAD", "HEAD"),
        (307, "POST", "POST"),
        (308, "PUT", "PUT"),
    ],
)
def test_which_method_follows(status: int, method: str, after: str) -> None:
    assert choose_method(status, method) == after
