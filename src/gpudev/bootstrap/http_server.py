"""Serves the API on its sockets: that of the network, and on one machine a unix socket for its owner.

Everything on a machine shares its loopback address, dev servers included, so no limit by address keeps one
of them from using up what its owner needs. The unix socket is in the state folder, where only the owner can
reach it, and has a budget of its own.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import socket
import time
from dataclasses import replace
from typing import Any, cast

import uvicorn
from fastapi import FastAPI
from typing_extensions import override

from gpudev.adapters.local.supervisor import tell_ready
from gpudev.api.connections import ConnectionLimits, Connections
from gpudev.bootstrap.http_protocol import Budgets, limited_by, sweep
from gpudev.bootstrap.listeners import BACKLOG, Listeners
from gpudev.settings import Settings
from gpudev.settings.service import ConnectionSettings

KEEP_ALIVE_SECONDS = 75
"""Longer than the 60 seconds after which load balancers drop an idle connection: they drop it first."""
_FLUSH_SECONDS = 10


async def serve(service: FastAPI, settings: Settings, listeners: Listeners) -> None:
    """Answer until told to stop."""
    open_files = raise_open_files()
    budgets = make_budgets(settings, open_files)
    config = uvicorn.Config(
        service,
        http=limited_by(budgets),
        ws="none",
        log_config=None,
        access_log=False,
        lifespan="on",
        timeout_graceful_shutdown=2,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        # Connections are accepted in one go, before the first of them is counted.
        backlog=min(BACKLOG, open_files // 4),
        # Whose word on a caller's address is taken is a setting of ours, see `api.origin`.
        proxy_headers=False,
    )
    # All that was made until now stays; the garbage collector need not look at it again and again.
    gc.freeze()
    # The socket listens already, so a request that comes now waits for the server and is not refused.
    tell_ready(settings.process.ready_fd)
    sweeping = asyncio.create_task(sweep(budgets))
    try:
        await _Server(config, listeners.local).serve(sockets=[listeners.network])
    finally:
        sweeping.cancel()


class _Server(uvicorn.Server):
    """uvicorn, which serves TCP sockets alone when it is given any, with a unix socket beside them."""

    def __init__(self, config: uvicorn.Config, local: socket.socket | None) -> None:
        super().__init__(config)
        self._local = local

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._local is not None:
            loop = cast("Any", asyncio.get_running_loop())  # uvloop's has an argument that its types lack
            # Other workers serve the socket as well, and who made it removes it.
            self.servers.append(
                await loop.create_unix_server(self._make_protocol, sock=self._local, cleanup_socket=False)
            )

    def _make_protocol(self) -> asyncio.Protocol:
        return self.config.http_protocol_class(  # type: ignore[call-arg]  # as uvicorn itself makes them
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )


def make_budgets(settings: Settings, open_files: int) -> Budgets:
    limits = make_limits(settings.connections, open_files)
    # All on the unix socket are the owner: only the total counts.
    most = min(settings.connections.local, open_files // 8)
    local = replace(limits, total=most, per_address=most, per_user=most)
    return Budgets(
        Connections(limits, time.monotonic), Connections(local, time.monotonic), settings.access.proxies
    )


def make_limits(settings: ConnectionSettings, open_files: int) -> ConnectionLimits:
    """At least half of the open files are left to everything that is not a connection."""
    return ConnectionLimits(
        total=min(settings.total, open_files // 2),
        per_address=settings.per_address,
        per_user=settings.per_user,
        head_seconds=settings.head_seconds,
        request_seconds=settings.request_seconds,
        idle_seconds=KEEP_ALIVE_SECONDS + _FLUSH_SECONDS,
    )


def raise_open_files() -> int:
    """Allow this process as many open files as it may have; returns how many those are."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most
