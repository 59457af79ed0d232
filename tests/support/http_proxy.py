"""An HTTP proxy on this machine: it makes tunnels and passes on requests, to ports that it is told."""

from __future__ import annotations

import base64
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import urlsplit

from typing_extensions import override

HOST = "127.0.0.1"


@dataclass
class HttpProxy:
    """What it was asked for is noted; `routes` are the ports of hosts that nobody else knows."""

    port: int = 0
    routes: dict[str, int] = field(default_factory=dict)
    login: str | None = None
    """`name:password`, where it wants one."""
    asked: list[str] = field(default_factory=list)
    """The first line of each request."""

    @property
    def url(self) -> str:
        return f"http://{f'{self.login}@' if self.login else ''}{HOST}:{self.port}"

    @property
    def address(self) -> str:
        """Without what it wants to know."""
        return f"http://{HOST}:{self.port}"


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True

    def __init__(self, proxy: HttpProxy) -> None:
        super().__init__((HOST, 0), _Handler)
        self.proxy = proxy


class _Handler(socketserver.StreamRequestHandler):
    @override
    def handle(self) -> None:
        proxy = cast("_Server", self.server).proxy
        while line := self.rfile.readline().decode("latin-1").strip():
            headers = self._read_headers()
            proxy.asked.append(line)
            method, target, _ = line.split(" ")
            if not _may_pass(proxy, headers):
                self._answer("407 Proxy Authentication Required")
                return
            host = (urlsplit(target).hostname if "://" in target else target.rpartition(":")[0]) or ""
            if host not in proxy.routes:
                self._answer("502 Bad Gateway")
                return
            with socket.create_connection((HOST, proxy.routes[host])) as behind:
                if method == "CONNECT":
                    self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    _join(self.connection, behind)
                    return
                self._pass_on(behind, method, target, headers)
                return

    def _read_headers(self) -> dict[str, str]:
        headers = {}
        while line := self.rfile.readline().decode("latin-1").strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return headers

    def _pass_on(self, behind: socket.socket, method: str, target: str, headers: dict[str, str]) -> None:
        body = self.rfile.read(int(headers.get("content-length", "0")))
        parts = urlsplit(target)
        kept = {name: value for name, value in headers.items() if name != "proxy-authorization"}
        lines = [f"{method} {parts._replace(scheme='', netloc='').geturl()} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in {**kept, "connection": "close"}.items()]
        behind.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        while data := behind.recv(65536):
            self.wfile.write(data)

    def _answer(self, status: str) -> None:
        self.wfile.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())


def _may_pass(proxy: HttpProxy, headers: dict[str, str]) -> bool:
    if proxy.login is None:
        return True
    expected = f"Basic {base64.b64encode(proxy.login.encode()).decode()}"
    return headers.get("proxy-authorization") == expected


def _join(one: socket.socket, other: socket.socket) -> None:
    back = threading.Thread(target=_copy, args=(other, one), daemon=True)
    back.start()
    _copy(one, other)
    # The client has closed it: nobody waits for what might still come.
    with suppress(OSError):
        other.shutdown(socket.SHUT_RDWR)
    back.join()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


@contextmanager
def running_http_proxy() -> Iterator[HttpProxy]:
    proxy = HttpProxy()
    server = _Server(proxy)
    proxy.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
