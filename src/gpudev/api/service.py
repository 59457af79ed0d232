"""The FastAPI application, made from the use cases that it serves."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import structlog
from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from typing_extensions import override

from gpudev import __version__
from gpudev.api import (
    actions,
    admin,
    cluster,
    disks,
    errors,
    health,
    identity,
    jobs,
    nodes,
    notifications,
    reports,
    submit,
)
from gpudev.api.body_limit import BODY_SECONDS, BodyLimit
from gpudev.api.job_json_cache import JobJsonCache
from gpudev.api.wire_schema import close_mappings, describe_streams
from gpudev.app.application import Application
from gpudev.telemetry import REQUESTS

_log = structlog.get_logger(__name__)


def make_service(application: Application, body_seconds: float = BODY_SECONDS) -> FastAPI:
    service = Service(
        title="gpu-dev",
        version=__version__,
        description="Lends GPU machines to developers: reserve, connect, release.",
        lifespan=_lifespan,
    )
    service.state.application = application
    service.state.job_json_cache = JobJsonCache(application)
    errors.install(service)
    service.add_middleware(BodyLimit, seconds=body_seconds)
    service.add_middleware(Stopwatch)
    # All in one row, what is asked most first: a router within a router looks twice for each of its routes.
    routers = (
        jobs.router,
        cluster.router,
        submit.router,
        cluster.queue_router,
        actions.router,
        disks.router,
        identity.key_router,
        notifications.router,
        admin.router,
        reports.router,
        nodes.router,
        identity.login_router,
        health.router,
    )
    service.router.routes[:0] = [route for router in routers for route in router.routes]
    return service


class Service(FastAPI):
    _document: dict[str, Any] | None = None

    @override
    def openapi(self) -> dict[str, Any]:
        if self._document is None:
            self._document = describe_streams(close_mappings(super().openapi()))
        return self._document


@asynccontextmanager
async def _lifespan(service: FastAPI) -> AsyncIterator[None]:
    application: Application = service.state.application
    chores = application.background
    tasks = [asyncio.create_task(chore.run(), name=type(chore).__name__) for chore in chores]
    for task in tasks:
        task.add_done_callback(_end_if_failed)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def _end_if_failed(chore: asyncio.Task[None]) -> None:
    """A worker that hears no events any more, say, must not look healthy: it ends, and is started again."""
    if not chore.cancelled() and chore.exception() is not None:
        _log.error("chore_failed", chore=chore.get_name(), error=repr(chore.exception()))
        signal.raise_signal(signal.SIGTERM)


class Stopwatch:
    """Measures requests up to the start of their answer, so that open streams do not count as slow."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()

        async def timed_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path_format", "unknown")
                elapsed = time.perf_counter() - started
                REQUESTS.labels(scope["method"], route, message["status"]).observe(elapsed)
            await send(message)

        await self._app(scope, receive, timed_send)
