"""The FastAPI application, made from the use cases that it serves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gpudev import __version__
from gpudev.api import auth, cluster, errors, health, jobs
from gpudev.app.application import Application
from gpudev.telemetry import REQUESTS


def make_service(application: Application) -> FastAPI:
    service = FastAPI(
        title="gpu-dev",
        version=__version__,
        description="Lends GPU machines to developers: reserve, connect, release.",
        lifespan=_lifespan,
    )
    service.state.application = application
    errors.install(service)
    service.add_middleware(Stopwatch)
    for module in (jobs, cluster, auth, health):
        service.include_router(module.router)
    return service


@asynccontextmanager
async def _lifespan(service: FastAPI) -> AsyncIterator[None]:
    listening = asyncio.create_task(service.state.application.hub.run())
    try:
        yield
    finally:
        listening.cancel()
        with suppress(asyncio.CancelledError):
            await listening


class Stopwatch:
    """Measures requests up to the start of their answer, so that open streams do not count as slow."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()

        async def timed_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", "unknown")
                elapsed = time.perf_counter() - started
                REQUESTS.labels(scope["method"], route, message["status"]).observe(elapsed)
            await send(message)

        await self._app(scope, receive, timed_send)
