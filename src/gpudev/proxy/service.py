"""The WebSocket server: whom it lets in, how many tunnels each may have, and when it ends them."""

from __future__ import annotations

import asyncio
import re
import socket
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import tzinfo
from http import HTTPStatus
from typing import cast
from urllib.parse import parse_qs, unquote, urlsplit

import structlog
from starlette.responses import Response as HttpAnswer
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from gpudev.api.client_address import find_address
from gpudev.api.encoding import json_response
from gpudev.api.errors import answer_of
from gpudev.app.application import TrustedProxies
from gpudev.app.audit_log import AuditTally
from gpudev.app.reservations.ssh_destination import SshDestinations
from gpudev.domain.audit import AuditAction
from gpudev.domain.errors import GpuDevError, NotFound, QuotaExceeded, StoreUnavailable, Unauthenticated
from gpudev.domain.names import UserId
from gpudev.proxy.tunnel import CHUNK, Tunnel
from gpudev.telemetry import TUNNEL_REQUESTS, TUNNELS
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say
from gpudev.texts.zones import zone_or_utc
from gpudev.wire.tunnel import ENDED, GOING_AWAY, IDLE, SUBPROTOCOL
from gpudev.wire.versions import TIME_ZONE_HEADER

_log = structlog.get_logger(__name__)

_PATH = re.compile(r"/v1/jobs/([^/]+)/ssh")
_RANK = re.compile("[0-9]{1,4}")
_HEALTH = "/health"
_PING_SECONDS = 30.0
_MOST_MESSAGES = 4
"""That wait for a slow dev server; then the client is not read any more."""
_LONGEST_MESSAGE = 1 << 20
_OVER = say(fact("tunnel_over"))


@dataclass(frozen=True, slots=True)
class Limits:
    tunnels_per_user: int
    idle_seconds: float
    check_seconds: float
    drain_seconds: float


class SshProxy:
    def __init__(
        self,
        destinations: SshDestinations,
        limits: Limits,
        trusted: TrustedProxies,
        keys_changed: asyncio.Event,
        tally: AuditTally,
    ) -> None:
        self._destinations = destinations
        self._keys_changed = keys_changed
        self._tally = tally
        self._limits = limits
        self._trusted = trusted
        self._open: set[Tunnel] = set()

    async def run(self, listener: socket.socket, stop: asyncio.Event) -> None:
        """Serve until told to stop, then leave open tunnels alone for a while."""
        async with serve(
            self._serve_tunnel,
            sock=listener,
            create_connection=Tunnel,
            process_request=self._answer,
            subprotocols=[Subprotocol(SUBPROTOCOL)],
            compression=None,
            ping_interval=_PING_SECONDS,
            ping_timeout=_PING_SECONDS,
            max_size=_LONGEST_MESSAGE,
            max_queue=_MOST_MESSAGES,
            write_limit=CHUNK,
            server_header=None,
        ) as server:
            checking = asyncio.create_task(self._check_now_and_then())
            await stop.wait()
            checking.cancel()
            await self._drain(server)

    async def _drain(self, server: Server) -> None:
        server.close(close_connections=False)
        ends = [tunnel.wait_closed() for tunnel in self._open]
        if ends:
            await asyncio.wait(map(asyncio.ensure_future, ends), timeout=self._limits.drain_seconds)
        for tunnel in tuple(self._open):
            await tunnel.end(GOING_AWAY, "stopped", say(fact("tunnel_proxy_stopped")))

    async def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        """None is a yes: the tunnel is opened."""
        parts = urlsplit(request.path)
        if parts.path == _HEALTH:
            return _response(json_response({"status": "ok"}))
        try:
            await self._grant(cast("Tunnel", connection), request)
        except GpuDevError as error:
            answer = answer_of(error, zone=_zone_of(request))
            TUNNEL_REQUESTS.labels(answer.status_code).inc()
            return _response(answer)
        TUNNEL_REQUESTS.labels(101).inc()
        return None

    async def _grant(self, tunnel: Tunnel, request: Request) -> None:
        parts = urlsplit(request.path)
        match = _PATH.fullmatch(parts.path)
        rank = parse_qs(parts.query).get("node", ["0"])[0]
        if match is None or not _RANK.fullmatch(rank):
            raise NotFound("no_such_tunnel_path")
        scheme, _, key = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key:
            raise Unauthenticated("tunnel_needs_a_key")
        peer = tunnel.remote_address[0] if tunnel.remote_address else None
        address = find_address(peer, request.headers.get("X-Forwarded-For"), self._trusted)
        visitor = await self._destinations.authentication.meet(key, address)
        destination = await self._destinations.find(visitor, unquote(match[1]), int(rank))
        self._check_room(destination.caller.user_id)
        tunnel.destination = destination

    def _check_room(self, user_id: UserId) -> None:
        counts = Counter(tunnel.destination.caller.user_id for tunnel in self._open if tunnel.destination)
        if counts[user_id] >= self._limits.tunnels_per_user:
            raise QuotaExceeded("too_many_connections", most=self._limits.tunnels_per_user)

    async def _serve_tunnel(self, connection: ServerConnection) -> None:
        tunnel = cast("Tunnel", connection)
        self._open.add(tunnel)
        self._note(tunnel, AuditAction.OPEN_TUNNEL)
        TUNNELS.inc()
        # What ended its right between the check of the request and this line must not be missed.
        self._keys_changed.set()
        try:
            await tunnel.run()
        finally:
            self._open.discard(tunnel)
            self._note(tunnel, AuditAction.CLOSE_TUNNEL, tunnel.describe())
            TUNNELS.dec()

    def _note(self, tunnel: Tunnel, action: AuditAction, detail: str = "") -> None:
        if led_to := tunnel.destination:
            self._tally.note(led_to.caller.entry(action, led_to.reservation_id, detail=detail))

    async def _check_now_and_then(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(
                    self._keys_changed.wait(), min(self._limits.check_seconds, self._limits.idle_seconds / 2)
                )
            self._keys_changed.clear()
            try:
                await self._end_what_is_over()
            except StoreUnavailable as error:
                # Nobody is thrown out because a database is silent.
                _log.warning("tunnels_not_checked", error=error.message)

    async def _end_what_is_over(self) -> None:
        now = asyncio.get_running_loop().time()
        for tunnel in [one for one in self._open if now - one.touched_at > self._limits.idle_seconds]:
            minutes = self._limits.idle_seconds / 60
            await tunnel.end(IDLE, "idle", say(fact("tunnel_idle", minutes=minutes)))
        led_to = {one: one.destination for one in self._open if one.destination}
        still_open = await self._destinations.list_open(led_to.values())
        over = [tunnel for tunnel, destination in led_to.items() if destination not in still_open]
        # All at once: a client that does not answer to the end holds up none of the others.
        await asyncio.gather(*(tunnel.end(ENDED, "ended", _OVER) for tunnel in over))


def _zone_of(request: Request) -> tzinfo:
    return zone_or_utc(next(iter(request.headers.get_all(TIME_ZONE_HEADER)), ""))


def _response(answer: HttpAnswer) -> Response:
    """An answer of the API's kind, as this server sends it; the connection ends with it."""
    headers = Headers({**dict(answer.headers), "Connection": "close"})
    return Response(answer.status_code, HTTPStatus(answer.status_code).phrase, headers, bytes(answer.body))
