"""The route of a dev server's own log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from gpudev.api.context import App, Caller
from gpudev.api.jobs import JobId
from gpudev.api.problems import OF_EVERY_CALLER, problems
from gpudev.app.reservations import LogQuery
from gpudev.domain.errors import GpuDevError

router = APIRouter(prefix="/v1", tags=["jobs"], responses=OF_EVERY_CALLER)


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
    return StreamingResponse(_stream(first, log), media_type="text/plain; charset=utf-8")


async def _stream(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    try:
        async for chunk in rest:
            yield chunk
    except GpuDevError as error:
        # The status is sent already; whoever reads on learns the reason from the next request.
        yield f"\n[gpu-dev: {error.code}]\n".encode()
