"""GitHub as far as we need it: `/<user>.keys`, as a small HTTP server that can also fail."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from typing_extensions import override


@dataclass
class FakeGitHub:
    url: str = ""
    keys: dict[str, list[str]] = field(default_factory=dict)
    """By user, in lower case."""
    status: int = 200
    content_type: str = "text/plain; charset=utf-8"
    hangs: threading.Event | None = None
    """No answer until it is set."""
    asked: list[str] = field(default_factory=list)
    """The paths that were asked for."""


@contextmanager
def running_github() -> Iterator[FakeGitHub]:
    github = FakeGitHub()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            github.asked.append(self.path)
            if github.hangs is not None:
                github.hangs.wait()
            keys = github.keys.get(self.path.removeprefix("/").removesuffix(".keys").lower())
            status = 404 if keys is None and github.status == 200 else github.status
            body = "".join(f"{key}\n" for key in keys or []).encode()
            self.send_response(status)
            self.send_header("Content-Type", github.content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        @override
        def log_message(self, *_: object) -> None:
            """Quiet."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        github.url = f"http://127.0.0.1:{server.server_port}"
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield github
        finally:
            server.shutdown()
            serving.join()
