"""What is made of STS' answers, by a server that answers as it is told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from typing_extensions import override

from gpudev.adapters.aws.sts import ask
from gpudev.domain.errors import GpuDevError, IdentityUnavailable, Unauthenticated

ERROR = (
    b"<ErrorResponse><Error><Type>Sender</Type><Code>%b</Code><Message>m</Message></Error></ErrorResponse>"
)

IDENTITY = b"""
<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <GetCallerIdentityResult>
    <Arn>arn:aws:sts::1:assumed-role/r/ada</Arn><UserId>AROA:ada</UserId><Account>1</Account>
  </GetCallerIdentityResult>
</GetCallerIdentityResponse>"""


class TalkingServer(HTTPServer):
    answer = (200, b"")
    paths: list[str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Talk(BaseHTTPRequestHandler):
    server: TalkingServer

    def do_POST(self) -> None:
        self.server.paths.append(self.path)
        self.rfile.read(int(self.headers["Content-Length"]))
        status, body = self.server.answer
        self.send_response(status)
        self.send_header("Location", f"{self.server.url}/elsewhere")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.do_POST()

    @override
    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[TalkingServer]:
    server = TalkingServer(("127.0.0.1", 0), _Talk)
    server.paths = []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    "status,body,error",
    [
        (403, ERROR % b"SignatureDoesNotMatch", Unauthenticated),
        (403, ERROR % b"ExpiredToken", Unauthenticated),
        (400, ERROR % b"Throttling", IdentityUnavailable),
        (500, ERROR % b"InternalFailure", IdentityUnavailable),
        (503, b"busy", IdentityUnavailable),
        (200, b"", IdentityUnavailable),
        (200, b"<html>Welcome</html>", IdentityUnavailable),
        (200, b"not even XML", IdentityUnavailable),
        (302, b"", IdentityUnavailable),
        (307, b"", IdentityUnavailable),
    ],
)
def test_whatever_is_not_an_identity_is_none(
    server: TalkingServer, status: int, body: bytes, error: type[GpuDevError]
) -> None:
    server.answer = (status, body)
    with pytest.raises(error):
        ask(server.url, {})
    assert server.paths == ["/"], "no redirect is followed"


def test_an_answer_names_who_signed(server: TalkingServer) -> None:
    server.answer = (200, IDENTITY)
    assert ask(server.url, {}) == "arn:aws:sts::1:assumed-role/r/ada"


def test_nobody_at_home_says_nothing_about_the_caller() -> None:
    with pytest.raises(IdentityUnavailable):
        ask("http://127.0.0.1:1", {})
