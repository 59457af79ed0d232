"""The queue in words: who waits for what, and when it is their turn."""

from __future__ import annotations

from dataclasses import replace

from gpudev.cli.render.table import format_table
from gpudev.cli.render.times import Now, format_hours, format_moment, format_span, format_wait
from gpudev.client.ssh import id8
from gpudev.texts.vocabulary import Status
from gpudev.wire.cluster import QueueEntry, QueueResponse

NUMBERS = frozenset({1, 2})


def only_type(queue: QueueResponse, gpu_type: str) -> QueueResponse:
    line = queue.queue.get(gpu_type, [])
    return replace(queue, queue={gpu_type: line} if line else {}, total=len(line))


def format_queue(queue: QueueResponse, now: Now, width: int | None = None) -> str:
    header = ("TYPE", "PLACE", "GPUS", "FOR", "WAITS", "STARTS", "LIKELY", "OWNER", "YOURS")
    rows = [
        (
            gpu_type,
            str(entry.position) if entry.position else "-",
            str(entry.gpu_count),
            format_hours(entry.duration_hours),
            format_span(now.at - entry.created_at),
            _start(entry, now),
            _window(entry, now),
            entry.user_id,
            f"{id8(entry.job_id)} {entry.name}" if entry.job_id else "",
        )
        for gpu_type, line in queue.queue.items()
        for entry in line
    ]
    return format_table(header, rows, NUMBERS, width)


def _window(entry: QueueEntry, now: Now) -> str:
    if not entry.likely_start:
        return ""
    first, last = entry.likely_start
    return f"{format_moment(first, now)} to {format_moment(last, now)}"


def _start(entry: QueueEntry, now: Now) -> str:
    if entry.status == Status.PENDING:
        return "being looked at"
    if not entry.estimated_start_at:
        return "not known yet"
    return f"{'at' if entry.start_at else 'by'} {format_wait(entry.estimated_start_at, now)}"
