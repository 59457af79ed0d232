"""The HTTP proxy on the way to a server: which one, if any, and a tunnel through it.

`HTTPS_PROXY` and `HTTP_PROXY` name one for addresses of each kind, `ALL_PROXY` one for both; the names in
small letters come first, as with curl. `NO_PROXY` lists hosts that are reached directly: `*`, names with all
that ends in them, addresses and networks, with a port or without. This machine is always reached directly.
"""

from __future__ import annotations

import socket
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from gpudev.client.config import LOOPBACK_HOSTS, ProxyVariables
from gpudev.client.transport import dial

_DEFAULT_PORT = 80
_LONGEST_HEAD = 64 * 1024
_END_OF_HEAD = b"\r\n\r\n"
_OK = range(200, 300)
_NEEDS_LOGIN = 407


class ProxyFailed(Exception):
    """The proxy is the reason why the server cannot be reached."""


class Proxy(NamedTuple):
    host: str
    port: int
    authorisation: str | None = None
    """Value of `Proxy-Authorization`, where the address of the proxy holds a name and a password."""

    @property
    def headers(self) -> dict[str, str]:
        return {"Proxy-Authorization": self.authorisation} if self.authorisation else {}


def find_proxy(scheme: str, host: str, port: int, variables: ProxyVariables) -> Proxy | None:
    """None: the server is reached directly."""
    address = (variables.https if scheme == "https" else variables.http) or variables.all
    if not address or host in LOOPBACK_HOSTS or is_direct(host, port, variables.no_proxy):
        return None
    parts = urlsplit(address if "://" in address else f"http://{address}")
    if parts.scheme != "http" or not parts.hostname:
        raise ProxyFailed(f"the proxy {_without_password(address)} is not supported: use http://HOST:PORT")
    return Proxy(parts.hostname, parts.port or _DEFAULT_PORT, _authorise(parts.username, parts.password))


def is_direct(host: str, port: int, no_proxy: str) -> bool:
    """Whether `NO_PROXY` names this host."""
    return any(_names(entry.strip().lower(), host.lower(), port) for entry in no_proxy.split(","))


def dial_to(proxy: Proxy, _host: str, _port: int, seconds: float) -> socket.socket:
    """A connection to the proxy itself, which passes on requests to the server."""
    try:
        return dial(proxy.host, proxy.port, seconds)
    except OSError as error:
        words = f"the proxy {proxy.host}:{proxy.port} cannot be reached ({error.strerror or error})"
        raise ProxyFailed(words) from error


def dial_through(proxy: Proxy, host: str, port: int, seconds: float) -> socket.socket:
    """A connection to the server, by a tunnel that the proxy makes."""
    connection = dial_to(proxy, host, port, seconds)
    try:
        _ask_for_tunnel(connection, proxy, host, port)
    except (OSError, ProxyFailed):
        connection.close()
        raise
    return connection


def _ask_for_tunnel(connection: socket.socket, proxy: Proxy, host: str, port: int) -> None:
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    lines += [f"{name}: {value}" for name, value in proxy.headers.items()]
    connection.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
    status = _read_status(connection)
    if status == _NEEDS_LOGIN:
        raise ProxyFailed(f"the proxy {proxy.host}:{proxy.port} wants a name and a password")
    if status not in _OK:
        raise ProxyFailed(
            f"the proxy {proxy.host}:{proxy.port} refused the connection (HTTP status {status})"
        )


def _names(entry: str, host: str, port: int) -> bool:
    if entry in {"", "*"}:
        return entry == "*"
    name, _, its_port = entry.rpartition(":") if entry.count(":") == 1 else (entry, "", "")
    if its_port and its_port != str(port):
        return False
    suffix = name.strip("[]").lstrip("*").lstrip(".")
    return host == suffix or host.endswith(f".{suffix}") or _is_in_network(host, suffix)


def _is_in_network(host: str, network: str) -> bool:
    if "/" not in network:
        return False
    import ipaddress  # noqa: PLC0415 - hardly anybody names a network

    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def _authorise(name: str | None, password: str | None) -> str | None:
    if name is None:
        return None
    import base64  # noqa: PLC0415 - few proxies want it

    pair = f"{unquote(name)}:{unquote(password or '')}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


def _without_password(address: str) -> str:
    return address.rpartition("@")[2]


def _read_status(connection: socket.socket) -> int:
    """One byte at a time: what follows the head is the server's."""
    received = b""
    while not received.endswith(_END_OF_HEAD):
        data = connection.recv(1)
        if not data or len(received) > _LONGEST_HEAD:
            raise ProxyFailed("the proxy closed the connection")
        received += data
    words = received.partition(b"\r\n")[0].split(b" ")
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():  # noqa: PLR2004 - version and status
        raise ProxyFailed("the proxy does not speak HTTP")
    return int(words[1])
