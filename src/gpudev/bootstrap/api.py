"""The process that is the HTTP API."""

from __future__ import annotations

import asyncio

import uvloop

from gpudev.api.service import make_service
from gpudev.bootstrap.access import read_admins
from gpudev.bootstrap.application import make_application
from gpudev.bootstrap.foundation import begin, open_stores
from gpudev.bootstrap.http_server import serve
from gpudev.bootstrap.listeners import Listeners, listening
from gpudev.bootstrap.metrics import serve_metrics
from gpudev.bootstrap.workers import run_workers
from gpudev.settings import Settings


def run_api() -> None:
    settings = Settings()
    begin(settings)
    # Before anything is served: a setting that names nobody must not go unseen.
    read_admins(settings)
    with listening(settings) as listeners:
        if settings.api.workers > 1:
            asyncio.run(run_workers(settings, listeners))
        else:
            uvloop.run(_serve_api(settings, listeners))


async def _serve_api(settings: Settings, listeners: Listeners) -> None:
    async with open_stores(settings) as stores:
        serve_metrics(settings.api, settings.api.metrics_dir)
        service = make_service(make_application(settings, stores), settings.connections.body_seconds)
        await serve(service, settings, listeners)
