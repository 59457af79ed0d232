"""The route that asks for a dev server, in the form of today and in that of 0.3 clients."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, tzinfo
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Body, Depends, Header, Response
from fastapi.openapi.models import Example
from pydantic import Discriminator, Tag

from gpudev.api import views
from gpudev.api.context import App, Visitor
from gpudev.api.encoding import json_response
from gpudev.api.errors import OF_EVERY_CALLER, problems
from gpudev.api.submit_0_3 import NO_CUSTOM_IMAGE, own_image, read_0_3
from gpudev.api.times import Zone
from gpudev.app.identity import User
from gpudev.app.reservations import ReserveRequest, Submitter, WantedDisk
from gpudev.domain.disk import NO_DISK
from gpudev.domain.errors import Invalid
from gpudev.domain.expiry import duration_of
from gpudev.domain.reservation import Settings, Spec
from gpudev.texts.zones import find_zone
from gpudev.wire.jobs import SubmitRequest, SubmitRequest03, SubmitResponse
from gpudev.wire.text import Name

router = APIRouter(prefix="/v1", tags=["jobs"], responses=OF_EVERY_CALLER)

NOT_SUPPORTED_YET = (
    "image",
    "dockerfile",
    "preserve_entrypoint",
    "jupyter_enabled",
    "recreate_env",
    "command",
)
"""Fields of the contract that have nothing behind them yet; to pass over them would be to lie.

What only some kinds of cluster can do is in `ClusterInfo.backend_fields` where it can be done.
"""

_ASKS_FOR_NOTHING = {"image": NO_CUSTOM_IMAGE}

TODAY, OF_0_3 = SubmitRequest.__name__, SubmitRequest03.__name__
_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl you@example.org"
EXAMPLES: dict[str, Example] = {
    "one GPU": {
        "summary": "One GPU for half an hour",
        "value": {"gpu_type": "t4", "gpu_count": 1, "duration_hours": 0.5, "ssh_public_keys": [_KEY]},
    },
    "with an environment": {
        "summary": "Two GPUs, with variables of one's own",
        "value": {
            "gpu_type": "t4",
            "gpu_count": 2,
            "duration_hours": 4,
            "env_vars": {"WANDB_MODE": "offline"},
            "ssh_public_keys": [_KEY],
            "client_version": "0.4.0",
        },
    },
}


def _form_of(body: Any) -> str:
    """One that says neither type nor count in the fields of today is of 0.3, whose server had defaults."""
    is_of_0_3 = isinstance(body, dict) and not {"gpu_type", "gpu_count"} & body.keys()
    return OF_0_3 if is_of_0_3 else TODAY


AnyForm = Annotated[
    Annotated[SubmitRequest, Tag(TODAY)] | Annotated[SubmitRequest03, Tag(OF_0_3)], Discriminator(_form_of)
]


async def _submitter(app: App, visitor: Visitor) -> Submitter:
    return await app.reservations.meet_submitter(visitor)


@router.post("/jobs/submit", response_model=SubmitResponse, responses=problems(400, 409))
async def submit(
    app: App,
    submitter: Annotated[Submitter, Depends(_submitter)],
    zone: Zone,
    body: Annotated[AnyForm, Body(openapi_examples=EXAMPLES)],
    idempotency_key: Annotated[
        str | None,
        Header(max_length=200, description="Any text of one's own; for 24 hours it means this very request."),
    ] = None,
    x_gpu_dev_client: Annotated[Name | None, Header(description="Version of the client.")] = None,
) -> Response:
    """Ask for a dev server. The same `Idempotency-Key` again gives the same reservation."""
    user, now, fields = submitter.caller, app.now(), app.cluster.backend_fields
    if isinstance(body, SubmitRequest03):
        request = read_0_3(body, user, now, fields)
    else:
        request = read_request(body, user, now, fields, x_gpu_dev_client or "")
    settings = replace(request.settings, time_zone=_name_zone(body, zone))
    request = replace(request, settings=settings)
    reservation = await app.reservations.submit(submitter, request, idempotency_key or "")
    told = [reservation.state.detail] if reservation.state.detail else []
    answer = SubmitResponse(
        job_id=reservation.id,
        reservation_id=reservation.id,
        status=reservation.state.status,
        message=views.say_all((*told, *reservation.spec.warnings), zone),
        queue_position=reservation.forecast.queue_position,
        estimated_start_time=reservation.forecast.estimated_start_at,
        warning=views.say_all(reservation.spec.warnings, zone) or None,
    )
    return json_response(answer)


def _name_zone(body: SubmitRequest | SubmitRequest03, zone: tzinfo) -> str:
    """Where the person is who asks; empty: nobody knows."""
    named = body.time_zone if isinstance(body, SubmitRequest) else None
    if named is None:
        return zone.key if isinstance(zone, ZoneInfo) else ""
    if find_zone(named) is None:
        raise Invalid("bad_time_zone", text=named, code="bad_time_zone")
    return named


def read_request(
    body: SubmitRequest, user: User, now: datetime, backend_fields: frozenset[str], client_version: str = ""
) -> ReserveRequest:
    _refuse_what_is_not_there(body, backend_fields)
    return ReserveRequest(
        spec=Spec(
            user_id=user.user_id,
            username=user.username,
            name=body.name or "",
            gpu_type=body.gpu_type,
            gpu_count=body.gpu_count,
            duration=duration_of(body.duration_hours),
            created_at=now,
            start_at=body.start_at,
            node_labels=body.node_labels or {},
        ),
        distributed=body.distributed or False,
        settings=Settings(
            image=own_image(body.image),
            env_vars=body.env_vars,
            ssh_public_keys=tuple(body.ssh_public_keys),
            github_user=body.github_user or "",
            client_version=client_version if body.client_version is None else body.client_version,
        ),
        disk=WantedDisk(NO_DISK if body.no_persistent_disk else body.disk_name or "", body.disk_size_gb),
    )


def _refuse_what_is_not_there(body: SubmitRequest, backend_fields: frozenset[str]) -> None:
    refused = (name for name in NOT_SUPPORTED_YET if name not in backend_fields)
    asked = [name for name in refused if getattr(body, name) not in _nothing(name)]
    if asked:
        raise Invalid("fields_not_supported", names=asked, code="not_supported_yet")


def _nothing(name: str) -> tuple[object, ...]:
    return (None, False, "", {}, _ASKS_FOR_NOTHING.get(name))
