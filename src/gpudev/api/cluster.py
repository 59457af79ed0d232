"""Routes of the cluster as a whole and of its queue: what room there is, who waits, what would start when."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, tzinfo
from typing import Annotated

from fastapi import APIRouter, Body, Request, Response

from gpudev.api import views
from gpudev.api.context import App, Caller, Visitor, application_of
from gpudev.api.encoding import json_response
from gpudev.api.errors import OF_EVERY_CALLER, problems
from gpudev.api.submit import EXAMPLES, read_request
from gpudev.api.times import Zone
from gpudev.api.views import say_if
from gpudev.app.reservations import StatusCount
from gpudev.domain.preview import Foreseen
from gpudev.domain.queue import Accuracy
from gpudev.texts.vocabulary import Status
from gpudev.wire.cluster import AvailabilityResponse, ClusterStatus, QueueEntry, QueueResponse, WhoAmI
from gpudev.wire.jobs import SubmitRequest
from gpudev.wire.queue import AccuracyResponse, Nearby, PreviewResponse, TypeAccuracy

router = APIRouter(prefix="/v1", tags=["cluster"], responses=OF_EVERY_CALLER)

_NONE = StatusCount(0, 0)
queue_router = APIRouter(prefix="/v1", tags=["queue"], responses=OF_EVERY_CALLER)
_HOUR, _MINUTE = timedelta(hours=1), timedelta(minutes=1)


@router.get("/gpu/availability", response_model=AvailabilityResponse)
async def availability(request: Request, visitor: Visitor) -> Response:
    """The GPUs of each type: how many there are, how many are free, who waits."""
    app = application_of(request)
    now = app.now()
    stored = await app.gpu_types.list_availability_for_visitor(visitor)
    rooms = [views.type_availability(room, now) for room in stored]
    return json_response(
        AvailabilityResponse(availability={room.gpu_type: room for room in rooms}, timestamp=now)
    )


@router.get("/cluster/status", response_model=ClusterStatus)
async def cluster_status(app: App, _caller: Caller) -> Response:
    """The whole cluster in a few numbers."""
    now = app.now()
    stored = await app.gpu_types.list_availability()
    counts = await app.reservations.count_live()
    rooms = [views.type_availability(entry, now) for entry in stored]
    answer = ClusterStatus(
        total_gpus=sum(room.total for room in rooms),
        available_gpus=sum(room.available for room in rooms),
        in_use_gpus=sum(room.in_use for room in rooms),
        queued_gpus=sum(room.queued for room in rooms),
        active_reservations=counts.get(Status.ACTIVE, _NONE).reservations,
        preparing_reservations=counts.get(Status.PREPARING, _NONE).reservations,
        queued_reservations=counts.get(Status.QUEUED, _NONE).reservations,
        pending_reservations=counts.get(Status.PENDING, _NONE).reservations,
        by_gpu_type={room.gpu_type: room for room in rooms},
        timestamp=now,
        notices=list(app.cluster.notices),
    )
    return json_response(answer)


@router.get("/queue", response_model=QueueResponse)
async def queue(app: App, caller: Caller, zone: Zone) -> Response:
    """Everybody who waits, by type; the names and reasons of one's own alone."""
    now = app.now()
    waiting = await app.reservations.list_waiting()
    lines: dict[str, list[QueueEntry]] = {}
    for reservation in waiting:
        lines.setdefault(reservation.spec.gpu_type, []).append(
            views.queue_entry(reservation, caller, now, zone)
        )
    return json_response(QueueResponse(queue=lines, total=len(waiting), timestamp=now))


@router.get("/me", response_model=WhoAmI)
async def who_am_i(app: App, caller: Caller) -> Response:
    """The user that the API key belongs to, with quotas and what is used of them."""
    arn = await app.identity.find_arn(caller)
    quotas = [views.quota_status(one) for one in await app.reports.list_quotas(caller)]
    answer = WhoAmI(
        user_id=caller.user_id,
        username=caller.username,
        is_admin=caller.is_admin,
        aws_arn=arn,
        quotas=quotas or None,
    )
    return json_response(answer)


@queue_router.post("/jobs/preview", response_model=PreviewResponse, responses=problems(400))
async def preview(
    app: App, caller: Caller, zone: Zone, body: Annotated[SubmitRequest, Body(openapi_examples=EXAMPLES)]
) -> Response:
    """What would become of a request: whether it starts now, else when and why, and what would be sooner."""
    now = app.now()
    request = read_request(body, caller, now, app.cluster.backend_fields)
    foreseen, nearby = await app.reservations.preview(caller, request)
    return json_response(_preview(foreseen, nearby, now, zone))


@queue_router.get("/queue/accuracy", response_model=AccuracyResponse)
async def accuracy(app: App, _caller: Caller) -> Response:
    """How far the forecasts of the last four weeks were off, by type."""
    measured = await app.reservations.measure_accuracy()
    shown = {one.gpu_type: _accuracy(one) for one in measured}
    return json_response(AccuracyResponse(accuracy=shown, timestamp=app.now()))


def _preview(
    foreseen: Foreseen, nearby: tuple[Foreseen, ...], now: datetime, zone: tzinfo
) -> PreviewResponse:
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
        gpu_type=foreseen.spec.gpu_type,
        gpu_count=foreseen.spec.gpu_count,
        duration_hours=foreseen.spec.duration / _HOUR,
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
