"""Routes that read reservations, which the contract calls jobs: lists, events, logs; and cancel."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from datetime import tzinfo
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from orjson import Fragment

from gpudev.api import views
from gpudev.api.context import App, Caller, Visitor, application_of
from gpudev.api.disks import any_operation_detail
from gpudev.api.encoding import encode, json_response
from gpudev.api.errors import OF_EVERY_CALLER, problems
from gpudev.api.job_json_cache import job_json_cache_of
from gpudev.api.times import Zone, zone_of
from gpudev.api.wire_schema import EVENT_STREAM
from gpudev.app.application import Application
from gpudev.app.identity import Caller as CallerOf
from gpudev.app.reservations import ListQuery, LogQuery
from gpudev.domain.errors import GpuDevError, Invalid, NotFound
from gpudev.domain.names import ReservationId
from gpudev.domain.queue import place_of
from gpudev.domain.reservation import Reservation
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say
from gpudev.texts.vocabulary import OperationStatus, Status
from gpudev.wire.jobs import (
    ActionResponse,
    JobDetail,
    JobEvent,
    JobList,
    OperationDetail,
)
from gpudev.wire.text import Lookup, Name
from gpudev.wire.versions import CLIENT_HEADER

router = APIRouter(prefix="/v1", tags=["jobs"], responses=OF_EVERY_CALLER)

JobId = Annotated[
    Lookup,
    Path(description="The full id, the name of a reservation, or 4 or more first characters of the id."),
]
_STOPPED, _QUEUED = (f'"status":"{status}"'.encode() for status in (Status.STOPPED, Status.QUEUED))
_WHOLE_ID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_EVENT_NUMBER = re.compile("[0-9]{1,9}")
_EVENT_HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store"}


@router.get("/jobs", response_model=JobList, responses=problems(400, 404))
async def list_jobs(
    request: Request,
    visitor: Visitor,
    status: Annotated[Name | None, Query(description="Statuses, separated by commas.")] = None,
    gpu_type: Annotated[Name | None, Query(description="Only of this type, in any letter case.")] = None,
    user: Annotated[Lookup | None, Query(description="For admins: whose, or all.")] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="The most on a page.")] = 50,
    offset: Annotated[int, Query(ge=0, le=2**31, description="How many to pass over.")] = 0,
) -> Response:
    """One's own reservations, newest first; for admins also another user's, or everybody's."""
    app, zone = application_of(request), zone_of(request)
    try:
        chosen_type = app.cluster.catalogue.get(gpu_type).name if gpu_type else None
        query = ListQuery(None, _statuses(status, request), chosen_type, limit, offset)
    except Invalid:
        # The answer says what there is to choose from, and only those who may know are told.
        await app.identity.authenticate(visitor)
        raise
    jobs: Sequence[object]
    if app.reservations.is_listed_by_marks(query, user):
        marked = await app.reservations.list_marks(visitor, query)
        jobs, total = await job_json_cache_of(request).of(marked.marks, zone), marked.total
    else:
        page, now = await app.reservations.list_page(visitor, query, user), app.now()
        jobs = [views.job_detail(each, app.cluster, now, zone) for each in page.reservations]
        total = page.total
    return _for_client({"jobs": jobs, "total": total, "limit": limit, "offset": offset}, request)


@router.get("/jobs/{job_id:job}", response_model=JobDetail, responses=problems(404, 409))
async def get_job(request: Request, visitor: Visitor, job_id: JobId) -> Response:
    """A reservation by its id, a prefix of it, or its name."""
    app = application_of(request)
    if _WHOLE_ID.fullmatch(job_id):
        cache = job_json_cache_of(request)
        return _for_client(await cache.find(visitor, ReservationId(job_id), zone_of(request)), request)
    reservation = await app.reservations.find_for_visitor(visitor, job_id)
    return _for_client(views.job_detail(reservation, app.cluster, app.now(), zone_of(request)), request)


def _for_client(value: object, request: Request) -> Response:
    """Clients of 0.3 do not know what is stopped: to them it waits. Quotes within texts are escaped."""
    response = json_response(value)
    if _is_old(request) and _STOPPED in response.body:
        return json_response(Fragment(bytes(response.body).replace(_STOPPED, _QUEUED)))
    return response


def _is_old(request: Request) -> bool:
    return CLIENT_HEADER not in request.headers


@router.post("/jobs/{job_id}/cancel", response_model=ActionResponse, responses=problems(404, 409))
async def cancel_job(app: App, caller: Caller, job_id: JobId) -> Response:
    """End a reservation. What has ended already stays as it is."""
    reservation = await app.reservations.find(caller, job_id)
    operation_id = await app.reservations.cancel(caller, reservation)
    answer = ActionResponse(
        job_id=reservation.id,
        action="cancel",
        status=OperationStatus.REQUESTED,
        message=say(fact("cancel_requested", reservation=reservation.id)),
        operation_id=operation_id,
    )
    return json_response(answer)


@router.get("/operations/{operation_id}", response_model=OperationDetail, responses=problems(404))
async def get_operation(
    app: App,
    caller: Caller,
    zone: Zone,
    operation_id: Annotated[Lookup, Path(description="As the request of the action was answered.")],
) -> Response:
    """What became of a requested action."""
    try:
        operation = await app.reservations.get_operation(caller, operation_id)
    except NotFound:
        of_disk = await app.disks.get_operation(caller, operation_id)
        return json_response(any_operation_detail(of_disk, zone))
    return json_response(views.operation_detail(operation, zone))


@router.get(
    "/jobs/{job_id}/events",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "The events, each a `JobEvent` in JSON.",
            "model": JobEvent,
            "content": {EVENT_STREAM: {}},
        },
        **problems(404, 409),
    },
)
async def follow_job(
    app: App,
    caller: Caller,
    zone: Zone,
    job_id: JobId,
    last_event_id: Annotated[
        Name | None, Header(description="Number of the last event that one has; what follows is told.")
    ] = None,
    *,
    follow: Annotated[bool, Query(description="Go on with what happens; false: end with what has.")] = True,
) -> Response:
    """Every event of the reservation as Server-Sent Events, then live, until all of it is cleaned up."""
    reservation = await app.reservations.find(caller, job_id)
    after = int(last_event_id) if last_event_id and _EVENT_NUMBER.fullmatch(last_event_id) else 0
    if not follow:
        history = views.job_events(await app.reservations.read_history(reservation, after), zone)
        return Response(b"".join(_sse(event, numbered=True) for event in history), headers=_EVENT_HEADERS)
    stream = _event_stream(app, caller, reservation, after, zone)
    return StreamingResponse(stream, headers=_EVENT_HEADERS)


async def _event_stream(
    app: Application, caller: CallerOf, reservation: Reservation, after: int, zone: tzinfo
) -> AsyncIterator[bytes]:
    # Who comes back may have missed that it moved in the queue.
    number, place = after, None if after else place_of(reservation)
    try:
        async for news in app.reservations.follow(caller, reservation, after):
            if news is None:
                yield b": still here\n\n"
                continue
            for event in views.job_events(news, zone):
                number = event.number
                yield _sse(event, numbered=True)
            moved = place_of(news.reservation)
            if moved != place and news.reservation.is_waiting and not news.events:
                yield _sse(views.queue_move(news, number, zone), numbered=False)
            place = moved
    except GpuDevError as error:
        # The stream has begun, so its status is sent already; the client comes back and learns the reason.
        yield f": {error.code}\n\n".encode()


def _sse(event: JobEvent, *, numbered: bool) -> bytes:
    number = f"id: {event.number}\n".encode() if numbered else b""
    return number + f"event: {event.kind}\ndata: ".encode() + encode(event) + b"\n\n"


def _statuses(text: str | None, request: Request) -> tuple[Status, ...]:
    names = [name.strip().lower() for name in (text or "").split(",") if name.strip()]
    known = [status.value for status in Status]
    for name in names:
        if name not in known:
            raise Invalid("bad_status", text=name, choices=known, code="bad_status")
    found = tuple(Status(name) for name in names)
    return (*found, Status.STOPPED) if Status.QUEUED in found and _is_old(request) else found


@router.get(
    "/jobs/{job_id}/logs",
    response_class=StreamingResponse,
    responses={
        200: {"description": "The log, line by line.", "content": {"text/plain": {}}},
        **problems(404, 409),
    },
)
async def read_logs(
    app: App,
    caller: Caller,
    job_id: JobId,
    tail: Annotated[
        int | None, Query(ge=0, le=100_000, description="Only so many of the last lines.")
    ] = None,
    follow: Annotated[bool, Query(description="Go on until the dev server is gone.")] = False,  # noqa: FBT002
) -> StreamingResponse:
    """What the dev server has written about its start and its SSH server."""
    reservation = await app.reservations.find(caller, job_id)
    log = app.reservations.read_logs(caller, reservation, LogQuery(tail, follow))
    # The first piece before the answer begins: that there is no log is a status, not a broken stream.
    first = await anext(log, b"")
    return StreamingResponse(_stream_log(first, log), media_type="text/plain; charset=utf-8")


async def _stream_log(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    try:
        async for chunk in rest:
            yield chunk
    except GpuDevError as error:
        # The status is sent already; whoever reads on learns the reason from the next request.
        yield f"\n[gpu-dev: {error.code}]\n".encode()
