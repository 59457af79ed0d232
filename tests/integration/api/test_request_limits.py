"""What may be sent without a key, and how long a connection may be silent, through real sockets."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from gpudev.api.body_limit import LONGER, MAX_BODY
from gpudev.bootstrap.http_protocol import MAX_OVERHEAD
from tests.integration.api.conftest import Person, offer_types
from tests.support.api_server import ApiServer, running_api

PER_ADDRESS = 8
PER_USER = 3
PATIENCE = 20.0
"""In seconds, for the test; what the server grants is far less."""
LIMITS = {
    "GPU_DEV_CONNECTIONS_PER_ADDRESS": str(PER_ADDRESS),
    "GPU_DEV_CONNECTIONS_PER_USER": str(PER_USER),
    "GPU_DEV_HEADER_SECONDS": "1",
    "GPU_DEV_BODY_SECONDS": "1",
    "GPU_DEV_REQUEST_SECONDS": "5",
}
ROUTES = [
    ("POST", "/v1/jobs/submit"),
    ("POST", "/v1/auth/local-login"),
    ("POST", "/v1/disks"),
    ("PUT", "/v1/me/notifications"),
    ("GET", "/health"),
    ("GET", "/v1/jobs"),
    ("POST", "/no/such/route"),
]


@pytest.fixture(scope="module")
def api_server(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    asyncio.run(offer_types(module_database))
    with running_api(module_database, Path(tmp_path_factory.mktemp("state")), LIMITS) as server:
        yield server


@contextmanager
def connected(server: ApiServer, sent: bytes = b"") -> Iterator[socket.socket]:
    with socket.create_connection((server.host, server.port), PATIENCE) as connection:
        connection.sendall(sent)
        yield connection


def read_all(connection: socket.socket) -> bytes:
    """Everything until the server closes the connection."""
    received = b""
    try:
        while data := connection.recv(65536):
            received += data
    except ConnectionResetError:
        pass
    return received


def read_answer(connection: socket.socket) -> tuple[int, Any]:
    """Status and JSON of one answer, whether or not the server closes the connection after it."""
    response = http.client.HTTPResponse(connection)
    response.begin()
    return response.status, json.loads(response.read())


def send_for_ever(connection: socket.socket, data: bytes) -> None:
    while True:
        connection.sendall(data)


def head_of(method: str, path: str, *headers: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: h", *headers, "", ""]).encode()


@pytest.mark.parametrize("method, path", ROUTES)
def test_a_body_that_is_announced_too_long_is_rejected_before_it_is_sent(
    api_server: ApiServer, method: str, path: str
) -> None:
    head = head_of(method, path, "Content-Type: application/json", "Content-Length: 30000000")
    with connected(api_server, head) as connection:
        status, answer = read_answer(connection)
    assert (status, answer["code"]) == (413, "body_too_large")


@pytest.mark.parametrize("method, path", ROUTES[:4])
def test_a_body_in_chunks_is_rejected_at_the_limit(api_server: ApiServer, method: str, path: str) -> None:
    size = LONGER.get(path, MAX_BODY) + 1
    head = head_of(method, path, "Content-Type: application/json", "Transfer-Encoding: chunked")
    with connected(api_server, head + b"%x\r\n" % size + b" " * size + b"\r\n") as connection:
        status, answer = read_answer(connection)
    assert (status, answer["code"]) == (413, "body_too_large")


def test_a_sender_that_reads_late_still_learns_that_its_body_was_too_long(api_server: ApiServer) -> None:
    answer = api_server.call("POST", "/v1/disks", {"name": "x" * 3_000_000})
    assert (answer.status, answer.json["code"]) == (413, "body_too_large")


def test_a_body_that_does_not_arrive_is_not_waited_for(api_server: ApiServer) -> None:
    with connected(
        api_server, head_of("POST", "/v1/jobs/submit", "Content-Length: 100") + b"{"
    ) as connection:
        status, answer = read_answer(connection)
    assert (status, answer["code"]) == (408, "body_too_slow")


@pytest.mark.parametrize("sent", [b"", b"GET /health HT", b"GET /health HTTP/1.1\r\nHost: h\r\nX-Slow: "])
def test_a_connection_that_sends_no_request_is_closed(api_server: ApiServer, sent: bytes) -> None:
    with connected(api_server, sent) as connection:
        assert read_all(connection) == b""


def test_half_a_second_request_is_not_waited_for_either(api_server: ApiServer) -> None:
    with connected(api_server, head_of("GET", "/health") + b"GET /health HT") as connection:
        assert read_all(connection).count(b"HTTP/1.1 200 OK") == 1


def test_an_answer_that_nobody_reads_is_given_up(api_server: ApiServer) -> None:
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(PATIENCE)
        connection.connect((api_server.host, api_server.port))
        connection.sendall(head_of("GET", "/openapi.json") * 200)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            # Nothing is read, so what the server wants to send stays with it.
            send_for_ever(connection, head_of("GET", "/openapi.json"))


def test_silent_connections_keep_nobody_out(api_server: ApiServer) -> None:
    with ExitStack() as open_ones:
        silent = [open_ones.enter_context(connected(api_server)) for _ in range(3 * PER_ADDRESS)]
        assert api_server.call("GET", "/health").status == 200
        # The oldest made room for the others.
        assert read_all(silent[0]) == b""


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /" + b"x" * 2 * MAX_OVERHEAD,
        b"GET /health HTTP/1.1\r\nX-Long: " + b"x" * 2 * MAX_OVERHEAD,
        b"GET /health HTTP/1.1\r\n" + b"X-Many: x\r\n" * (MAX_OVERHEAD // 5),
    ],
    ids=["url", "one header", "many headers"],
)
def test_headers_without_an_end_are_rejected(api_server: ApiServer, sent: bytes) -> None:
    with connected(api_server) as connection:
        try:
            connection.sendall(sent)
            assert b" 431 " in read_all(connection)
        except ConnectionError:
            pass  # Closed while it was still sending, which is the point.


def test_trailers_without_an_end_are_cut_off(api_server: ApiServer) -> None:
    head = head_of("POST", "/v1/jobs/submit", "Transfer-Encoding: chunked") + b"0\r\n"
    with connected(api_server, head) as connection, pytest.raises(ConnectionError):
        send_for_ever(connection, b"X-Trailer: x\r\n" * 1000)


def test_what_is_not_http_is_told_so_in_json(api_server: ApiServer) -> None:
    with connected(api_server, b"GET /\xff HTTP/1.1\r\nHost: h\r\n\r\n") as connection:
        status, answer = read_answer(connection)
    assert (status, answer["code"]) == (400, "bad_http")


def test_one_user_has_so_many_connections_and_others_are_not_affected(
    api_server: ApiServer, make_person: Callable[..., Person]
) -> None:
    busy, calm = make_person("streamer"), make_person("bystander")
    job = busy.submit().json["job_id"]
    path = f"/v1/jobs/{job}/events"
    with ExitStack() as streams:
        for _ in range(PER_USER):
            assert streams.enter_context(api_server.stream(path, busy.key)).status == 200
        rejected = busy.call("GET", "/v1/me")
        assert (rejected.status, rejected.json["code"]) == (429, "too_many_connections")
        assert calm.call("GET", "/v1/me").status == 200
        assert api_server.call("GET", "/health").status == 200
