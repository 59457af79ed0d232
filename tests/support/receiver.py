"""Somebody's webhook: a small HTTP server that takes, refuses or delays what it is sent."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from typing_extensions import override


@dataclass(frozen=True, slots=True)
class Received:
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    host: str = ""
    status: int = 200
    hangs: threading.Event | None = None
    """No answer until it is set."""
    received: list[Received] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://{self.host}/hook?team=1"


@contextmanager
def running_receiver() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.received.append(Received({k.lower(): v for k, v in self.headers.items()}, body))
            if receiver.hangs is not None:
                receiver.hangs.wait()
            self.send_response(receiver.status)
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        @override
        def log_message(self, *_: object) -> None:
            """Quiet."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver.host = f"127.0.0.1:{server.server_port}"
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            serving.join()
