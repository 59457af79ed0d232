"""Routes that change a reservation: each records an operation, and a controller carries it out."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Response

from gpudev.api.context import App, Caller
from gpudev.api.encoding import json_response
from gpudev.api.jobs import JobId
from gpudev.api.problems import problems
from gpudev.app.extend import ExtensionRequest
from gpudev.domain.reservation import OperationKind, OperationStatus
from gpudev.wire.jobs import ActionResponse, ExtendRequest

router = APIRouter(prefix="/v1", tags=["jobs"])

IdempotencyKey = Annotated[
    str | None, Header(max_length=200, description="Any text of one's own that means this very request.")
]
ClientVersion = Annotated[str | None, Header(description="Version of the client.")]


@router.post("/jobs/{job_id}/extend", response_model=ActionResponse, responses=problems(400, 404, 409))
async def extend_job(
    app: App,
    caller: Caller,
    job_id: JobId,
    body: ExtendRequest,
    idempotency_key: IdempotencyKey = None,
    x_gpu_dev_client: ClientVersion = None,
) -> Response:
    """Give an active reservation more time, also in the grace after its end; 48 hours in all at most."""
    reservation = await app.find(caller, job_id)
    asked = ExtensionRequest(
        body.extension_hours, idempotency_key or "", looks_first=x_gpu_dev_client is None
    )
    accepted = await app.extend(caller, reservation, asked)
    answer = ActionResponse(
        job_id=reservation.id,
        action=OperationKind.EXTEND,
        status=OperationStatus.REQUESTED,
        message=accepted.message,
        operation_id=accepted.operation_id,
    )
    return json_response(answer)
