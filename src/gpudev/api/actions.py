"""Routes that change a reservation: each records an operation, and a controller carries it out."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Response

from gpudev.api import views
from gpudev.api.context import App, Caller
from gpudev.api.encoding import json_response
from gpudev.api.errors import OF_EVERY_CALLER, problems
from gpudev.api.jobs import JobId
from gpudev.api.times import Zone
from gpudev.app.reservations import ExtensionRequest, WantedSize
from gpudev.domain.errors import Invalid
from gpudev.domain.reservation import Reservation
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say
from gpudev.texts.vocabulary import OperationKind, OperationStatus
from gpudev.wire.jobs import (
    ActionResponse,
    ExtendRequest,
    JobDetail,
    JobUsage,
    KeepRequest,
    StartRequest,
    UsagePoint,
)
from gpudev.wire.text import Lookup, Name

router = APIRouter(prefix="/v1", tags=["jobs"], responses=OF_EVERY_CALLER)

IdempotencyKey = Annotated[
    str | None, Header(max_length=200, description="Any text of one's own that means this very request.")
]
ClientVersion = Annotated[Name | None, Header(description="Version of the client.")]


@router.post("/jobs/{job_id}/extend", response_model=ActionResponse, responses=problems(400, 404, 409))
async def extend_job(
    app: App,
    caller: Caller,
    job_id: JobId,
    body: ExtendRequest,
    zone: Zone,
    idempotency_key: IdempotencyKey = None,
    x_gpu_dev_client: ClientVersion = None,
) -> Response:
    """Give an active reservation more time, also in the grace after its end; 48 hours in all at most."""
    reservation = await app.reservations.find(caller, job_id)
    asked = ExtensionRequest(
        body.extension_hours, idempotency_key or "", looks_first=x_gpu_dev_client is None
    )
    accepted = await app.reservations.extend(caller, reservation, asked)
    answer = ActionResponse(
        job_id=reservation.id,
        action=OperationKind.EXTEND,
        status=OperationStatus.REQUESTED,
        message=say(accepted.answer, zone),
        operation_id=accepted.operation_id,
    )
    return json_response(answer)


@router.post("/jobs/{job_id}/keep", response_model=ActionResponse, responses=problems(400, 404, 409))
async def keep_job(app: App, caller: Caller, job_id: JobId, body: KeepRequest, zone: Zone) -> Response:
    """Hold off the end of an active reservation that nobody uses, for some hours."""
    reservation = await app.reservations.find(caller, job_id)
    operation_id = await app.reservations.keep(caller, reservation, body.hours, body.reason)
    answer = ActionResponse(
        job_id=reservation.id,
        action=OperationKind.KEEP,
        status=OperationStatus.REQUESTED,
        message=say(fact("keep_requested", reservation=reservation.id, hours=body.hours), zone),
        operation_id=operation_id,
    )
    return json_response(answer)


@router.post("/jobs/{job_id}/stop", response_model=ActionResponse, responses=problems(404, 409))
async def stop_job(app: App, caller: Caller, job_id: JobId, zone: Zone) -> Response:
    """End the server of an active reservation and free its GPUs and its disk; the time left is kept.

    What is not on the disk is lost: `/workspace`, and a home without a disk.
    """
    reservation = await app.reservations.find(caller, job_id)
    operation_id = await app.reservations.stop(caller, reservation)
    answer = ActionResponse(
        job_id=reservation.id,
        action=OperationKind.STOP,
        status=OperationStatus.REQUESTED,
        message=say(fact("stop_requested", reservation=reservation.id), zone),
        operation_id=operation_id,
    )
    return json_response(answer)


@router.post("/jobs/{job_id}/start", response_model=JobDetail, responses=problems(400, 404, 409, 429))
async def start_job(app: App, caller: Caller, job_id: JobId, body: StartRequest, zone: Zone) -> Response:
    """Put a stopped reservation back into the queue, for the same or for other GPUs.

    Its clock goes on once it is active.
    """
    reservation = await app.reservations.find(caller, job_id)
    wanted = WantedSize(body.gpu_type, body.gpu_count, body.distributed)
    started = await app.reservations.start(caller, reservation, wanted)
    return json_response(views.job_detail(started, app.cluster, app.now(), zone))


@router.post("/jobs/{job_id}/jupyter/enable", response_model=ActionResponse, responses=problems(404, 409))
@router.post("/jobs/{job_id}/jupyter/disable", response_model=ActionResponse, responses=problems(404, 409))
async def switch_jupyter(app: App, caller: Caller, job_id: JobId) -> Response:
    """Start or stop Jupyter Lab on a dev server. Not supported yet: 400 `not_supported_yet`."""
    reservation = await app.reservations.find(caller, job_id)
    raise Invalid("jupyter_not_supported", reservation=reservation.id, code="not_supported_yet")


@router.post("/jobs/{job_id}/users", response_model=ActionResponse, responses=problems(404, 409))
async def add_user(app: App, caller: Caller, job_id: JobId) -> Response:
    """Let another person log in. Not supported yet: 400 `not_supported_yet`."""
    raise _sharing_is_not_there(await app.reservations.find(caller, job_id))


@router.delete("/jobs/{job_id}/users/{name}", response_model=ActionResponse, responses=problems(404, 409))
async def remove_user(
    app: App,
    caller: Caller,
    job_id: JobId,
    name: Annotated[Lookup, Path(description="Name of the person at GitHub.")],  # noqa: ARG001 - see below
) -> Response:
    """Let another person log in no longer. Not supported yet: 400 `not_supported_yet`."""
    raise _sharing_is_not_there(await app.reservations.find(caller, job_id))


@router.get("/jobs/{job_id}/usage", response_model=JobUsage, responses=problems(404, 409))
async def get_usage(
    app: App,
    caller: Caller,
    job_id: JobId,
    points: Annotated[int, Query(ge=1, le=500, description="In how many stretches of time.")] = 40,
) -> Response:
    """How much a dev server was used over its life so far."""
    reservation = await app.reservations.find(caller, job_id)
    found = await app.reservations.list_usage(reservation, points)
    shown = [
        UsagePoint(
            at=point.at,
            gpu_percent=point.gpu_use,
            gpu_memory_percent=point.gpu_memory,
            cpu_cores=point.cpu,
            idle_share=point.idle_share,
        )
        for point in found
    ]
    is_simulated = reservation.spec.gpu_type in app.cluster.simulated_types
    return json_response(JobUsage(job_id=reservation.id, simulated=is_simulated, points=shown))


def _sharing_is_not_there(reservation: Reservation) -> Invalid:
    return Invalid("sharing_not_supported", reservation=reservation.id, code="not_supported_yet")
