"""Routes of the cluster as a whole."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from gpudev.api import views
from gpudev.api.context import App, Caller, Visitor, application_of
from gpudev.api.encoding import json_response
from gpudev.api.problems import OF_EVERY_CALLER
from gpudev.api.zones import Zone
from gpudev.app.reservations import StatusCount
from gpudev.texts.vocabulary import Status
from gpudev.wire.cluster import AvailabilityResponse, ClusterStatus, QueueEntry, QueueResponse, WhoAmI

router = APIRouter(prefix="/v1", tags=["cluster"], responses=OF_EVERY_CALLER)

_NONE = StatusCount(0, 0)


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
