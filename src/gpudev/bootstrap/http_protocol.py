"""HTTP on one connection, as uvicorn speaks it, with limits on connections and on silence.

uvicorn waits for headers without an end and counts no connections. This subclass reports to `Connections`
what each connection is doing. It also limits the bytes around a body: headers, trailers and chunk lengths.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.types import Receive, Scope, Send
from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gpudev.api.client_address import find_address, is_trusted
from gpudev.api.connections import NOBODY, Connection, Connections, Phase
from gpudev.api.context import CONNECTION
from gpudev.api.encoding import encode, json_response
from gpudev.app.application import TrustedProxies
from gpudev.app.limits import origin_of
from gpudev.wire.cluster import ErrorBody

MAX_OVERHEAD = 65_536
"""Bytes of one request that are not its body."""
_SWEEP_SECONDS = 1.0
_FORWARDED_FOR = b"x-forwarded-for"


def _answer(status: str, body: ErrorBody, *headers: bytes) -> bytes:
    content = encode(body)
    lines = (
        f"HTTP/1.1 {status}".encode(),
        b"content-type: application/json",
        b"content-length: %d" % len(content),
        b"connection: close",
        *headers,
    )
    return b"\r\n".join([*lines, b"", content])


_NO_ROOM_BODY = ErrorBody(
    detail="The server has as many connections as it can serve.",
    code="too_many_connections",
    hint="Try again in a few seconds.",
)
_NO_ROOM = _answer("503 Service Unavailable", _NO_ROOM_BODY, b"retry-after: 1")
_HEAD_TOO_LONG = _answer(
    "431 Request Header Fields Too Large",
    ErrorBody(
        detail=f"The headers of a request may have at most {MAX_OVERHEAD} bytes.",
        code="headers_too_large",
        hint="Send less.",
    ),
)
_NOT_HTTP = _answer(
    "400 Bad Request",
    ErrorBody(
        detail="The request is not valid HTTP.", code="bad_http", hint="The routes are listed at /docs."
    ),
)


async def _reject(scope: Scope, receive: Receive, send: Send) -> None:
    """Instead of the application, for an address that has too many requests in progress."""
    await json_response(_NO_ROOM_BODY, 503, {"Retry-After": "1", "Connection": "close"})(scope, receive, send)


@dataclass(frozen=True, slots=True)
class Budgets:
    """A budget for the network and one for the owner's unix socket, so that neither can exhaust the other."""

    network: Connections
    local: Connections
    trusted: TrustedProxies

    def drop_overdue(self) -> None:
        self.network.drop_overdue()
        self.local.drop_overdue()


async def sweep(budgets: Budgets) -> None:
    """Close connections whose time is over, until cancelled."""
    while True:
        await asyncio.sleep(_SWEEP_SECONDS)
        budgets.drop_overdue()


class LimitedProtocol(HttpToolsProtocol):
    """A connection that is counted. Make a class for a process with `limited_by`."""

    budgets: ClassVar[Budgets]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._budget = self.budgets.network
        self._counted: Connection | None = None
        self._is_proxy = False
        self._overhead = 0
        self._is_within_head = False

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        peer = transport.get_extra_info("socket")
        is_local = peer is not None and peer.family == socket.AF_UNIX
        self._budget = self.budgets.local if is_local else self.budgets.network
        super().connection_made(transport)
        self._counted = self._budget.open(transport.abort, self._find_owner())
        if self._counted is None:
            self._end(_NO_ROOM)

    def _find_owner(self) -> Hashable:
        """Of a connection of which nothing is known but its other end."""
        if self.client is None:
            return NOBODY
        self._is_proxy = is_trusted(self.client[0], self.budgets.trusted)
        return NOBODY if self._is_proxy else origin_of(find_address(self.client[0], None, ()))

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._counted is not None:
            self._budget.close(self._counted)
        super().connection_lost(exc)

    @override
    def data_received(self, data: bytes) -> None:
        counted = self._counted
        if counted is None:
            return
        self._overhead += len(data)
        super().data_received(data)
        if self._overhead > MAX_OVERHEAD:
            self._end(_HEAD_TOO_LONG if counted.phase in {Phase.HEAD, Phase.IDLE} else b"")
        elif counted.phase is Phase.IDLE:
            self._budget.move(counted, Phase.HEAD)

    @override
    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_within_head = True
        self.scope["state"][CONNECTION] = self

    @override
    def on_headers_complete(self) -> None:
        counted = self._counted
        self._is_within_head = False
        if counted is not None and counted.phase in {Phase.HEAD, Phase.IDLE}:
            owner = self._find_forwarded() if self._is_proxy else counted.owner
            has_room = self._budget.begin_request(counted, owner)
            self.app = self.config.loaded_app if has_room else _reject
        super().on_headers_complete()

    def _find_forwarded(self) -> Hashable:
        peer = self.client[0] if self.client else None
        words = b", ".join(value for name, value in self.headers if name == _FORWARDED_FOR)
        return origin_of(find_address(peer, words.decode("latin-1"), self.budgets.trusted))

    @override
    def on_body(self, body: bytes) -> None:
        self._overhead -= len(body)
        super().on_body(body)

    @override
    def on_response_complete(self) -> None:
        self._overhead = 0
        if self._counted is not None:
            next_phase = Phase.HEAD if self._is_within_head else Phase.IDLE
            self._budget.move(self._counted, Phase.REQUEST if self.pipeline else next_phase)
            if self._is_proxy:
                self._budget.release(self._counted)
        super().on_response_complete()

    @override
    def send_400_response(self, msg: str) -> None:
        self._end(_NOT_HTTP)

    def claim(self, user: Hashable) -> None:
        """The request that is being served carries a good key of this user."""
        if self._counted is not None:
            self._budget.claim(self._counted, user)

    def _end(self, words: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(words)
            self.transport.close()


def limited_by(budgets: Budgets) -> type[LimitedProtocol]:
    return type("ProcessProtocol", (LimitedProtocol,), {"budgets": budgets})
