"""What happens to a reservation while one waits for it, a line each."""

from __future__ import annotations

from gpudev.cli.render.times import Now, format_moment
from gpudev.wire.jobs import JobDetail, JobEvent


def format_event(event: JobEvent, now: Now, *, verbose: bool) -> str:
    """What happened; with `verbose` also its name, when it was and how long after the event before."""
    if not verbose:
        return event.message
    return f"{format_moment(event.at, now)} (+{event.elapsed_seconds:.1f} s) {event.kind}: {event.message}"


def format_waiting(job: JobDetail, now: Now) -> str:
    """The place in the queue and the reason. No countdown: the line changes only when the plan does."""
    place = f"position {job.queue_position}" if job.queue_position else "waiting"
    start = f"starts by {format_moment(job.estimated_start_at, now)}" if job.estimated_start_at else ""
    line = f"In the queue: {place}, {start or 'start not known yet'}."
    return f"{line} {job.current_detailed_status}" if job.current_detailed_status else line
