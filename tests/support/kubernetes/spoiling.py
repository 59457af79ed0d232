"""Something between us and the API server that spoils its answers, as load balancers and proxies do."""

from __future__ import annotations

import json
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from tests.support.kubernetes.kubeconfig import API_PORT, Endpoint

_PAGE = b"<html><body><h1>404 Not Found</h1></body></html>"
_CHUNK = 65536


class Spoilt(StrEnum):
    NOT = "answers as they are"
    ERROR = "500"
    SILENCE = "no answer at all"
    PAGE = "404, as a page"
    OF_ANOTHER = "404, the API's own about another object"


class SpoilingProxy:
    """Passes on what it is asked, until it is told to spoil it; whatever is open is cut off then."""

    def __init__(self, upstream: Endpoint) -> None:
        self._upstream = urlsplit(upstream.address)
        self._trust = ssl.create_default_context(cadata=upstream.authority.decode())
        self._open: set[socket.socket] = set()
        self._changed = threading.Event()
        self.how = Spoilt.NOT
        self.spoilt = 0

    def spoil(self, how: Spoilt) -> None:
        before, self._changed = self._changed, threading.Event()
        self.how, self.spoilt = how, 0
        before.set()
        for connection in tuple(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def wait_for_change(self) -> None:
        self._changed.wait()

    def pass_on(self, client: socket.socket) -> None:
        """Byte by byte, so that watches and upgraded connections are what they were."""
        host, port = self._upstream.hostname or "", self._upstream.port or API_PORT
        with (
            socket.create_connection((host, port), timeout=10) as plain,
            self._trust.wrap_socket(plain, server_hostname=host) as server,
        ):
            server.settimeout(None)
            self._open.add(client)
            try:
                while _copy_what_came(client, server):
                    pass
            finally:
                self._open.discard(client)


def _copy_what_came(client: socket.socket, server: ssl.SSLSocket) -> bool:
    """Wait for bytes on either side and give them to the other; False at the end."""
    ready = [server] if server.pending() else select.select([client, server], [], [])[0]
    for source in ready:
        try:
            chunk = source.recv(_CHUNK)
            (client if source is server else server).sendall(chunk)
        except OSError:
            return False
        if not chunk:
            return False
    return True


@contextmanager
def spoiling_proxy(upstream: Endpoint, kubeconfig: Path) -> Iterator[SpoilingProxy]:
    """A proxy before the API server, and the kubeconfig changed to lead through it."""
    proxy = SpoilingProxy(upstream)

    class OfThisProxy(_Handler):
        way = proxy

    server = ThreadingHTTPServer(("127.0.0.1", 0), OfThisProxy)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    config = json.loads(kubeconfig.read_text())
    config["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{server.server_port}"}
    kubeconfig.write_text(json.dumps(config))
    try:
        yield proxy
    finally:
        proxy.spoil(Spoilt.ERROR)
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    way: ClassVar[SpoilingProxy]

    def handle(self) -> None:
        if self.way.how is Spoilt.NOT:
            self.way.pass_on(self.connection)
        else:
            with suppress(ConnectionError):
                super().handle()

    def log_message(self, *_: Any) -> None:
        """Nothing: it is asked often."""

    def _answer(self) -> None:
        how = self.way.how
        self.way.spoilt += 1
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if how is Spoilt.SILENCE:
            self.way.wait_for_change()
        elif how is Spoilt.PAGE:
            self._send(404, "text/html", _PAGE)
        elif how is Spoilt.OF_ANOTHER:
            about = {"kind": "namespaces", "name": "elsewhere"}
            status = {"kind": "Status", "reason": "NotFound", "code": 404, "details": about}
            self._send(404, "application/json", json.dumps(status).encode())
        else:
            self._send(500, "text/plain", b"internal error")

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _answer  # noqa: N815 - names that the base class looks up

    def _send(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
