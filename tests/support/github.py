"""GitHub as far as we need it, `/<user>.keys` and its REST API: a small HTTP server that can also fail."""

from __future__ import annotations

import http.server
import json
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
    facts: dict[str, object] = field(default_factory=dict)
    """What the API says, by path; all else it does not find."""
    api_status: int = 200
    api_headers: dict[str, str] = field(default_factory=dict)
    tokens: set[str | None] = field(default_factory=set)
    """What the API was asked with."""

    @property
    def api_url(self) -> str:
        return f"{self.url}/api/v3"

    def add_member(self, organisation: str, user: str, *, team: str = "", state: str = "active") -> None:
        place = f"/orgs/{organisation}{f'/teams/{team}' if team else ''}"
        self.facts[f"{place}/memberships/{user}"] = {"state": state, "role": "member"}

    def permit(self, repository: str, user: str, permission: str) -> None:
        self.facts[f"/repos/{repository}/collaborators/{user}/permission"] = {"permission": permission}


@contextmanager
def running_github() -> Iterator[FakeGitHub]:
    github = FakeGitHub()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            github.asked.append(self.path)
            if github.hangs is not None:
                github.hangs.wait()
            if self.path.startswith("/api/v3/"):
                self._answer_api(self.path.removeprefix("/api/v3"))
                return
            keys = github.keys.get(self.path.removeprefix("/").removesuffix(".keys").lower())
            status = 404 if keys is None and github.status == 200 else github.status
            body = "".join(f"{key}\n" for key in keys or []).encode()
            self._send(status, {"Content-Type": github.content_type}, body)

        def _answer_api(self, path: str) -> None:
            github.tokens.add(self.headers["Authorization"])
            fact = github.facts.get(path)
            status = 404 if fact is None and github.api_status == 200 else github.api_status
            self._send(status, github.api_headers, json.dumps(fact).encode())

        def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
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
