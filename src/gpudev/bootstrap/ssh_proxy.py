"""The process that is the SSH proxy."""

from __future__ import annotations

import asyncio
import gc
import socket

import uvloop

from gpudev.adapters.local.control_plane.readiness import tell_ready
from gpudev.app.connect import Connect
from gpudev.app.login import Authenticate
from gpudev.bootstrap.access import make_admit, make_key_uses
from gpudev.bootstrap.foundation import SystemClock, begin, open_stores
from gpudev.bootstrap.interruption import interrupted
from gpudev.bootstrap.metrics import serve_metrics
from gpudev.proxy.service import Limits, SshProxy
from gpudev.settings import Settings


def run_ssh_proxy() -> None:
    settings = Settings()
    begin(settings)
    with socket.create_server((settings.ssh_proxy.host, settings.ssh_proxy.port), backlog=1024) as listener:
        uvloop.run(_serve_ssh_proxy(settings, listener))


async def _serve_ssh_proxy(settings: Settings, listener: socket.socket) -> None:
    clock = SystemClock()
    async with open_stores(settings) as stores:
        key_uses = make_key_uses(stores, clock)
        admit = make_admit(settings, Authenticate(stores.users, clock), key_uses, clock)
        proxy = SshProxy(Connect(admit, stores.reservations), _make_limits(settings), settings.access.proxies)
        if settings.local.state_dir is None:
            # On one machine the API serves the metrics of all processes.
            serve_metrics(settings.api, settings.api.metrics_dir)
        noting = asyncio.create_task(key_uses.run())
        gc.freeze()
        tell_ready(settings.process.ready_fd)
        await proxy.run(listener, interrupted())
        noting.cancel()


def _make_limits(settings: Settings) -> Limits:
    proxy = settings.ssh_proxy
    return Limits(
        tunnels_per_user=proxy.tunnels_per_user,
        idle_seconds=proxy.idle_minutes * 60,
        check_seconds=proxy.check_seconds,
        drain_seconds=proxy.drain_seconds,
    )
