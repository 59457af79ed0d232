"""What happens to a reservation while one waits for it, a line each."""

from __future__ import annotations

from gpudev.cli.render.reservations import format_place
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


def list_waiting(job: JobDetail, now: Now) -> tuple[str, ...]:
    """The same for a drawing, where the title says already that it waits."""
    remarks = (
        format_place(job, now).capitalize(),
        _format_window(job, now),
        job.current_detailed_status,
        "Ctrl-C: leave it, or cancel it.",
    )
    return tuple(remark for remark in remarks if remark)


def _format_window(job: JobDetail, now: Now) -> str:
    if not job.likely_start:
        return ""
    first, last = job.likely_start
    return f"Likely between {format_moment(first, now)} and {format_moment(last, now)}"
