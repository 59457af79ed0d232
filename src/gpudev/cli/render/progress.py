"""What happens to a reservation while one waits for it, a line each."""

from __future__ import annotations

from datetime import timedelta

from gpudev.cli.render.reservations import format_place
from gpudev.cli.render.times import Now, format_moment, format_span
from gpudev.wire.jobs import JobDetail, JobEvent


def format_event(event: JobEvent, now: Now, *, verbose: bool) -> str:
    """`Queued: ...`; with `verbose` also when it happened and how long after the event before."""
    line = f"{event.kind.capitalize()}: {event.message}"
    if not verbose:
        return line
    elapsed = format_span(timedelta(seconds=event.elapsed_seconds))
    return f"{format_moment(event.at, now)} +{elapsed}  {line}"


def format_waiting(job: JobDetail, now: Now) -> str:
    """Where the reservation stands just now, with the reason."""
    if job.status == "queued":
        place = format_place(job, now)
        why = f" {job.current_detailed_status}" if job.current_detailed_status else ""
        return f"In the queue: {place}.{why}"
    return job.current_detailed_status or f"The reservation is {job.status}."
