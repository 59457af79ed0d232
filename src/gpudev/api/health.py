"""Routes that need no key: is it there, is it ready, what is it."""

from __future__ import annotations

from fastapi import APIRouter, Response

from gpudev import __version__
from gpudev.api.context import App
from gpudev.api.encoding import json_response
from gpudev.api.errors import OF_EVERY_ROUTE
from gpudev.app.application import Application
from gpudev.domain.errors import StoreUnavailable
from gpudev.domain.readiness import ReadyStatus
from gpudev.texts.sentences import say
from gpudev.wire.cluster import Health

router = APIRouter(tags=["health"], responses=OF_EVERY_ROUTE)


@router.get("/", include_in_schema=False)
async def root() -> Response:
    links = {"docs": "/docs", "health": "/health", "ready": "/ready"}
    return json_response({"service": "gpu-dev", "version": __version__, "links": links})


@router.get("/health", response_model=Health)
async def health(app: App) -> Response:
    """The process answers; the body says how database and queue are."""
    return json_response(await _check(app))


@router.get("/ready", response_model=Health, responses={503: {"model": Health}})
async def ready(app: App) -> Response:
    """200 once database, queue and schema are as this version needs them, else 503.

    The body says more: `degraded` while no controller works or a chore keeps failing. That is no reason to
    take this replica out of service, so it is 200 as well.
    """
    try:
        found = await app.service.check_readiness()
    except StoreUnavailable as error:
        return json_response(_unhealthy(app, error), 503)
    body = Health(
        status=found.status,
        database="connected",
        queue="connected",
        timestamp=app.now(),
        controller=say(found.controller),
        disk=found.disk,
        failing=list(found.failing),
    )
    return json_response(body, 503 if found.status is ReadyStatus.UNHEALTHY else 200)


async def _check(app: Application) -> Health:
    try:
        await app.service.check_health()
    except StoreUnavailable as error:
        return _unhealthy(app, error)
    return Health(status="healthy", database="connected", queue="connected", timestamp=app.now())


def _unhealthy(app: Application, error: StoreUnavailable) -> Health:
    return Health(status="unhealthy", database=error.message, queue="unknown", timestamp=app.now())
