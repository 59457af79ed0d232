"""A tunnel to a dev server through the SSH proxy, as OpenSSH's `ProxyCommand` wants it."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from urllib.parse import quote

from gpudev.client.errors import ServerFailed, Unreachable, error_of
from gpudev.client.http import Http, Request
from gpudev.client.redirects import MOST_HOPS, REDIRECTS, find_target, too_many
from gpudev.client.relay import Relay
from gpudev.client.session import UNAUTHENTICATED, Client
from gpudev.client.ssh import check_proxy_url
from gpudev.client.websocket import END_OF_HEAD, SWITCHING_PROTOCOLS, Head, Upgrade
from gpudev.wire.tunnel import SUBPROTOCOL, tunnel_path

_LONGEST_HEAD = 64 * 1024
_LONGEST_REFUSAL = 64 * 1024


@dataclass(frozen=True, slots=True)
class Tunnel:
    """An open one. `early` came together with the answer that opened it."""

    connection: socket.socket = field(repr=False)
    early: bytes = field(repr=False)

    def relay(self, source: int, sink: int) -> None:
        """Between it and two open files, until both directions have ended."""
        with self.connection:
            Relay(self.connection, self.early, source, sink).run()


def open_tunnel(client: Client, proxy_url: str, reservation: str, rank: int) -> Tunnel:
    """As the user of this client; logs in once more if the key has ended."""
    proxy = Http(check_proxy_url(proxy_url, client.target.api_url))
    path = f"{proxy.prefix}{tunnel_path(quote(reservation, safe=''), rank)}"
    refusal = _follow(proxy, path, client.authorisation())
    if isinstance(refusal, _Refusal) and refusal.status == UNAUTHENTICATED:
        client.log_in()
        refusal = _follow(proxy, path, client.authorisation())
    if isinstance(refusal, _Refusal):
        raise error_of(refusal.status, refusal.body)
    return refusal


@dataclass(frozen=True, slots=True)
class _Refusal:
    status: int
    body: bytes
    location: str | None = None


def _follow(proxy: Http, path: str, authorisation: str) -> Tunnel | _Refusal:
    for _ in range(MOST_HOPS + 1):
        answer = _ask(proxy, path, authorisation)
        if isinstance(answer, Tunnel) or answer.status not in REDIRECTS or answer.location is None:
            return answer
        path = find_target(proxy.address_of(Request("GET", path, is_whole=True)), answer.location)
    raise too_many(proxy.address_of(Request("GET", path, is_whole=True)))


def _ask(proxy: Http, path: str, authorisation: str) -> Tunnel | _Refusal:
    upgrade = Upgrade.new(SUBPROTOCOL)
    headers = {"Host": proxy.authority, "Authorization": authorisation, **proxy.own_headers}
    connection = proxy.dial()
    try:
        with proxy.translated_errors():
            connection.sendall(upgrade.request(path, headers))
            head, rest = _read_head(connection)
            if head.status != SWITCHING_PROTOCOLS:
                body = _read_refusal(connection, head, rest)
                refusal = _Refusal(head.status, body, head.headers.get("location"))
                connection.close()
                return refusal
        upgrade.check(head.headers)
    except (Unreachable, ServerFailed):
        connection.close()
        raise
    return Tunnel(connection, rest)


def _read_head(connection: socket.socket) -> tuple[Head, bytes]:
    received = b""
    while END_OF_HEAD not in received:
        data = connection.recv(4096)
        if not data or len(received) > _LONGEST_HEAD:
            raise ServerFailed("The SSH proxy ended the connection instead of an answer.")
        received += data
    head, _, rest = received.partition(END_OF_HEAD)
    return Head.parse(head), rest


def _read_refusal(connection: socket.socket, head: Head, received: bytes) -> bytes:
    length = head.headers.get("content-length", "")
    wanted = min(int(length), _LONGEST_REFUSAL) if length.isdecimal() else 0
    while len(received) < wanted and (data := connection.recv(4096)):
        received += data
    return received
