"""Following a reservation until its dev server is there."""

from __future__ import annotations

from gpudev.cli.progress import Progress
from gpudev.cli.render.progress import format_event, format_waiting
from gpudev.cli.render.times import read_now
from gpudev.client.errors import NotActive
from gpudev.client.session import ENDED, Client
from gpudev.client.sse import PLACE_KIND
from gpudev.wire.jobs import JobDetail, JobEvent

UNTOLD = ("submitted", "queued")
"""The command has just said the first itself, and the second is told with its place in the queue."""


def wait_until_active(client: Client, reservation_id: str, progress: Progress, *, verbose: bool) -> JobDetail:
    """Tell what happens, and in the queue the place there, looked up again at each heartbeat."""
    is_queued = False
    for event in client.events(reservation_id):
        if event is not None:
            is_queued = event.status == "queued"
            if event.kind != PLACE_KIND and (verbose or event.kind not in UNTOLD):
                progress.tell(format_event(event, read_now(), verbose=verbose))
            if event.kind == "active":
                break
            _check_not_ended(event)
        if is_queued:
            _update_place(client.get(reservation_id), progress)
    return client.get(reservation_id)


def _update_place(job: JobDetail, progress: Progress) -> None:
    if job.status == "queued":
        progress.update(format_waiting(job, read_now()))


def _check_not_ended(event: JobEvent) -> None:
    if event.kind in ENDED:
        raise NotActive(
            f"The reservation is {event.kind}: {event.message}",
            hint="Ask again with: gpu-dev reserve",
            code=event.reason or "",
        )
