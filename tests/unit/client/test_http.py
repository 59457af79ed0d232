"""One kept connection, repeats only where they are safe, and words for what went wrong."""

from __future__ import annotations

import socket
import threading

import pytest

from gpudev import __version__
from gpudev.client import http
from gpudev.client.errors import Unreachable
from gpudev.client.http import Http, Request
from tests.support.fake_api import FakeApi, Reply

GET = Request("GET", "/thing", may_repeat=True)
POST = Request("POST", "/thing", b"{}")
FINE = Reply(body={"fine": True})
DROPPED = Reply(is_dropped=True)
STARTING = Reply(503, {"detail": "Starting.", "code": "store_unavailable"})


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "REPEAT_PAUSES", (0.0, 0.0))


def test_requests_share_a_connection_and_name_the_client(api: FakeApi) -> None:
    api.on("GET", "/thing", FINE)
    with Http(api.url) as connection:
        assert [connection.send(GET).status for _ in range(3)] == [200, 200, 200]
    assert len({seen.client_port for seen in api.requests}) == 1
    assert api.requests[0].headers["x-gpu-dev-client"] == __version__


def test_a_path_in_the_address_comes_before_every_route(api: FakeApi) -> None:
    api.on("GET", "/gpu/thing", FINE)
    with Http(f"{api.url}/gpu") as connection:
        assert connection.send(GET).is_ok


@pytest.mark.parametrize("trouble", [DROPPED, STARTING], ids=["dropped", "503"])
def test_what_may_be_repeated_is_repeated(api: FakeApi, trouble: Reply) -> None:
    api.on("GET", "/thing", trouble, trouble, FINE)
    with Http(api.url) as connection:
        assert connection.send(GET).status == 200
    assert len(api.requests) == 3


def test_repeats_end(api: FakeApi) -> None:
    api.on("GET", "/thing", STARTING)
    with Http(api.url) as connection:
        assert connection.send(GET).status == 503
    assert len(api.requests) == 3


def asking_again_in(seconds: str, status: int = 429) -> Reply:
    return Reply(status, {"detail": "Not now."}, headers={"Retry-After": seconds})


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What was waited for, in seconds; nobody waits really."""
    taken: list[float] = []
    monkeypatch.setattr(http.time, "sleep", taken.append)
    return taken


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_is_asked_again_when_it_says_so(api: FakeApi, pauses: list[float], status: int) -> None:
    api.on("GET", "/thing", asking_again_in("3", status), asking_again_in("1", status), FINE)
    with Http(api.url) as connection:
        assert connection.send(GET).status == 200
    assert pauses == [3.0, 1.0]


def test_a_server_that_always_says_later_is_not_asked_for_ever(api: FakeApi, pauses: list[float]) -> None:
    api.on("GET", "/thing", asking_again_in("2"))
    with Http(api.url) as connection:
        answer = connection.send(GET)
    assert (answer.status, answer.retry_after) == (429, 2.0)
    assert (len(api.requests), pauses) == (3, [2.0, 2.0])


@pytest.mark.parametrize("reply", [asking_again_in("300"), asking_again_in("300", 503), Reply(429, {})])
def test_what_would_take_too_long_or_who_knows_how_long_is_told_at_once(
    api: FakeApi, pauses: list[float], reply: Reply
) -> None:
    api.on("GET", "/thing", reply)
    with Http(api.url) as connection:
        assert connection.send(GET).status == reply.status
    assert (len(api.requests), pauses) == (1, [])


def test_a_time_that_cannot_be_read_is_none(api: FakeApi, pauses: list[float]) -> None:
    api.on("GET", "/thing", asking_again_in("Sun, 15 Nov 2026 06:00:00 GMT", 503), FINE)
    with Http(api.url) as connection:
        assert connection.send(GET).status == 200
    assert pauses == [0.0]


def test_what_may_not_be_repeated_is_not_repeated_later_either(api: FakeApi, pauses: list[float]) -> None:
    api.on("POST", "/thing", asking_again_in("1"))
    with Http(api.url) as connection:
        assert connection.send(POST).status == 429
    assert (len(api.requests), pauses) == (1, [])


def test_what_may_not_be_repeated_is_sent_once(api: FakeApi) -> None:
    api.on("POST", "/thing", DROPPED)
    with pytest.raises(Unreachable, match="closed the connection"):
        Http(api.url).send(POST)
    assert len(api.requests) == 1


def test_an_answer_of_any_status_is_an_answer(api: FakeApi) -> None:
    with Http(api.url) as connection:
        assert connection.send(POST).status == 404


def test_a_stopped_server_on_this_machine_can_be_started() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(Unreachable, match="connection refused") as caught:
            Http(url).send(GET)
    assert url in caught.value.message
    assert caught.value.hint == "Start it with: gpu-dev up"


def test_a_silent_server_is_not_waited_for_without_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        connection = Http(f"http://127.0.0.1:{silent.getsockname()[1]}", answer_seconds=0.05)
        with pytest.raises(Unreachable, match="it took too long"):
            connection.send(POST)


def test_a_stream_that_falls_silent_is_unreachable(api: FakeApi) -> None:
    hold = threading.Event()
    api.on("GET", "/thing", Reply(stream=": hello\n", hold=hold))
    try:
        with Http(api.url).stream(GET, 0.05) as stream:
            lines = stream.lines()
            assert next(lines) == ": hello"
            with pytest.raises(Unreachable, match="it took too long"):
                next(lines)
    finally:
        hold.set()


@pytest.mark.parametrize(
    "url, authority",
    [
        ("http://127.0.0.1:8321", "127.0.0.1:8321"),
        ("http://[::1]:8321", "[::1]:8321"),
        ("https://gpu.example.org", "gpu.example.org:443"),
        ("http://gpu.example.org", "gpu.example.org:80"),
    ],
)
def test_the_authority_has_its_port_written_out(url: str, authority: str) -> None:
    assert Http(url).authority == authority
