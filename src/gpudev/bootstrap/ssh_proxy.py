"""The process that is the SSH proxy."""

from __future__ import annotations

import asyncio
import gc
import socket

import uvloop

from gpudev.adapters.local.supervisor import tell_ready
from gpudev.app.audit_log import AuditTally
from gpudev.app.identity.authentication import KeyOwners
from gpudev.app.identity.key_watch import KeyWatch
from gpudev.app.reservations.ssh_destination import SshDestinations
from gpudev.bootstrap.access import make_authentication, make_key_uses
from gpudev.bootstrap.foundation import SystemClock, begin, open_stores
from gpudev.bootstrap.interruption import interrupted
from gpudev.bootstrap.metrics import serve_metrics
from gpudev.proxy.service import Limits, SshProxy
from gpudev.settings import Settings

_TUNNELS_WRITTEN_SINGLY = 60
"""Of one user in a minute; a loop of `ssh` commands opens more, and is written as a number."""


def run_ssh_proxy() -> None:
    settings = Settings()
    begin(settings)
    with socket.create_server((settings.ssh_proxy.host, settings.ssh_proxy.port), backlog=1024) as listener:
        uvloop.run(_serve_ssh_proxy(settings, listener))


async def _serve_ssh_proxy(settings: Settings, listener: socket.socket) -> None:
    clock = SystemClock()
    async with open_stores(settings) as stores:
        key_uses = make_key_uses(stores, clock)
        owners = KeyOwners(stores.users, clock)
        tally = AuditTally(stores.audit, stores.health, clock, singly=_TUNNELS_WRITTEN_SINGLY)
        authentication = make_authentication(settings, owners, key_uses, tally, clock)
        key_watch = KeyWatch(owners)
        destinations = SshDestinations(authentication, stores.reservations, stores.users, clock)
        limits, proxies = _make_limits(settings), settings.access.proxies
        proxy = SshProxy(destinations, limits, proxies, key_watch.changed, tally)
        if settings.local.state_dir is None:
            # On one machine the API serves the metrics of all processes.
            serve_metrics(settings.api, settings.api.metrics_dir)
        runs = (key_uses.run(), tally.run(), key_watch.run(stores.messages.signals))
        chores = [asyncio.create_task(run) for run in runs]
        gc.freeze()
        tell_ready(settings.process.ready_fd)
        await proxy.run(listener, interrupted())
        for chore in chores:
            chore.cancel()
        # They write what they have collected.
        await asyncio.gather(*chores, return_exceptions=True)


def _make_limits(settings: Settings) -> Limits:
    proxy = settings.ssh_proxy
    return Limits(
        tunnels_per_user=proxy.tunnels_per_user,
        idle_seconds=proxy.idle_minutes * 60,
        check_seconds=proxy.check_seconds,
        drain_seconds=proxy.drain_seconds,
    )
