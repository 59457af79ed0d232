"""An HTTP server that answers as it is told, for tests of what the client makes of answers."""

from __future__ import annotations

import http.server
import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from urllib.parse import urlsplit

from typing_extensions import override

SECRET = b"the login file's secret\n"


@dataclass(frozen=True)
class Seen:
    """A request as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    client_port: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """An answer in JSON, or a stream of text; `hold` keeps a stream open until it is set."""

    status: int = 200
    body: object = None
    stream: str | None = None
    hold: threading.Event | None = None
    headers: dict[str, str] = field(default_factory=dict)
    is_dropped: bool = False
    """The connection ends without any answer."""


@dataclass
class FakeApi:
    """Replies by method and path; the last reply of a route stays for all later requests."""

    url: str = ""
    requests: list[Seen] = field(default_factory=list)
    replies: defaultdict[tuple[str, str], list[Reply]] = field(default_factory=lambda: defaultdict(list))
    fallback: Callable[[Seen], Reply] | None = None
    """Answers where no reply is planned, instead of 404."""

    def on(self, method: str, path: str, *replies: Reply) -> None:
        self.replies[method, path] = list(replies)

    def answer(self, seen: Seen) -> Reply:
        self.requests.append(seen)
        planned = self.replies.get((seen.method, urlsplit(seen.path).path))
        if not planned and self.fallback is not None:
            return self.fallback(seen)
        if not planned:
            return Reply(404, {"detail": f"{seen.path} not found", "code": "not_found", "hint": ""})
        return planned.pop(0) if len(planned) > 1 else planned[0]

    def seen(self, method: str, path: str) -> list[Seen]:
        return [one for one in self.requests if (one.method, urlsplit(one.path).path) == (method, path)]


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, api: FakeApi) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.api = api


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    @override
    def log_message(self, *_: object) -> None:
        """Quiet."""

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        seen = Seen(self.command, self.path, headers, body, self.client_address[1])
        reply = cast("_Server", self.server).api.answer(seen)
        if reply.is_dropped:
            self.close_connection = True
        elif reply.stream is not None:
            self._send_stream(reply)
        else:
            self._send(reply, json.dumps(reply.body).encode())

    def _send(self, reply: Reply, content: bytes) -> None:
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _send_stream(self, reply: Reply) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        content = (reply.stream or "").encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(content), content))
        if reply.hold is not None:
            reply.hold.wait(60)
        self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True


@contextmanager
def running_fake_api() -> Iterator[FakeApi]:
    api = FakeApi()
    server = _Server(api)
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def login_answer(api_key: str, life: timedelta = timedelta(hours=2)) -> dict[str, object]:
    return {
        "api_key": api_key,
        "key_prefix": api_key[:8],
        "user_id": 1,
        "username": "ada",
        "expires_at": (datetime.now(UTC) + life).isoformat(),
        "ttl_hours": 2,
    }
