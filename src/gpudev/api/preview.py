"""Routes that tell what the queue would promise, and how good its promises were."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, tzinfo
from typing import Annotated

from fastapi import APIRouter, Body, Response

from gpudev.api.context import App, Caller
from gpudev.api.encoding import json_response
from gpudev.api.problems import OF_EVERY_CALLER, problems
from gpudev.api.submit import EXAMPLES, read_request
from gpudev.api.views import say_if
from gpudev.api.zones import Zone
from gpudev.domain.preview import Foreseen
from gpudev.domain.queue import Accuracy
from gpudev.wire.jobs import SubmitRequest
from gpudev.wire.queue import AccuracyResponse, Nearby, PreviewResponse, TypeAccuracy

router = APIRouter(prefix="/v1", tags=["queue"], responses=OF_EVERY_CALLER)

_HOUR, _MINUTE = timedelta(hours=1), timedelta(minutes=1)


@router.post("/jobs/preview", response_model=PreviewResponse, responses=problems(400))
async def preview(
    app: App, caller: Caller, zone: Zone, body: Annotated[SubmitRequest, Body(openapi_examples=EXAMPLES)]
) -> Response:
    """What would become of a request: whether it starts now, else when and why, and what would be sooner."""
    request = read_request(body, "", app.cluster.backend_fields)
    foreseen, nearby = await app.reservations.preview(caller, request)
    return json_response(_view(foreseen, nearby, app.now(), zone))


@router.get("/queue/accuracy", response_model=AccuracyResponse)
async def accuracy(app: App, _caller: Caller) -> Response:
    """How far the forecasts of the last four weeks were off, by type."""
    measured = await app.reservations.measure_accuracy()
    views = {one.gpu_type: _accuracy(one) for one in measured}
    return json_response(AccuracyResponse(accuracy=views, timestamp=app.now()))


def _view(foreseen: Foreseen, nearby: tuple[Foreseen, ...], now: datetime, zone: tzinfo) -> PreviewResponse:
    start = None if foreseen.starts_now else foreseen.start
    return PreviewResponse(
        starts_now=foreseen.starts_now,
        estimated_start_at=start,
        estimated_wait_minutes=math.ceil((start - now) / _MINUTE) if start else None,
        likely_start=list(foreseen.likely_start) if foreseen.likely_start else None,
        reason=foreseen.reason,
        current_detailed_status=say_if(foreseen.detail, zone),
        nearby=[_nearby(one, one.start) for one in nearby if one.start],
    )


def _nearby(foreseen: Foreseen, start: datetime) -> Nearby:
    return Nearby(
        gpu_type=foreseen.wish.gpu_type,
        gpu_count=foreseen.wish.gpu_count,
        duration_hours=foreseen.wish.duration / _HOUR,
        starts_now=foreseen.starts_now,
        estimated_start_at=start,
    )


def _accuracy(measured: Accuracy) -> TypeAccuracy:
    return TypeAccuracy(
        started=measured.started,
        promises_kept=measured.promises_kept,
        promise_error_minutes=measured.promise_error,
        likely_error_minutes=measured.likely_error,
        bias=measured.bias,
        coverage=measured.coverage,
    )
