"""The cluster in words: what is free, who waits and until when, and what one may have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from gpudev.cli.render.table import fold, format_fields, format_table
from gpudev.cli.render.times import Now, format_hours, format_moment, format_span, format_wait
from gpudev.texts.vocabulary import Status
from gpudev.wire.cluster import ClusterStatus, QueueEntry, QueueResponse, QuotaStatus, TypeAvailability

if TYPE_CHECKING:
    from gpudev.wire.queue import AccuracyResponse, Nearby, PreviewResponse


_TYPE_NUMBERS = frozenset({1, 2, 3, 4, 5})


def format_availability(types: Iterable[TypeAvailability], width: int | None = None) -> str:
    header = ("TYPE", "FREE", "IN USE", "TOTAL", "AT ONCE", "WAITING", "NEXT FREE")
    rows = [
        (
            _name(entry),
            str(entry.available),
            str(entry.in_use),
            str(entry.total),
            str(entry.max_reservable),
            str(entry.queued),
            _next_free(entry),
        )
        for entry in types
    ]
    return format_table(header, rows, _TYPE_NUMBERS, width) if rows else "No GPU types are on offer."


def format_status(status: ClusterStatus, width: int | None = None) -> str:
    gpus = (
        f"{status.available_gpus} free, {status.in_use_gpus} in use, {status.total_gpus} in all; "
        f"{status.queued_gpus} more wanted"
    )
    reservations = (
        f"{status.active_reservations} active, {status.preparing_reservations} preparing, "
        f"{status.queued_reservations} queued, {status.pending_reservations} pending"
    )
    overview = format_fields([("GPUs", gpus), ("Reservations", reservations)])
    notices = [fold(notice, width, "Note: ") for notice in status.notices]
    types = format_availability(status.by_gpu_type.values(), width)
    return "\n".join([overview, "", types, *_spaced(notices)])


def _name(entry: TypeAvailability) -> str:
    return f"{entry.gpu_type} (simulated)" if entry.simulated else entry.gpu_type


def _next_free(entry: TypeAvailability) -> str:
    if entry.estimated_wait_minutes:
        return f"in {format_span(timedelta(minutes=entry.estimated_wait_minutes))}"
    if entry.available:
        return "now"
    return "not known" if entry.total else "none in service"


def _spaced(lines: list[str]) -> list[str]:
    return ["", *lines] if lines else []


_QUEUE_NUMBERS = frozenset({1, 2})


def only_type(queue: QueueResponse, gpu_type: str) -> QueueResponse:
    line = queue.queue.get(gpu_type, [])
    return replace(queue, queue={gpu_type: line} if line else {}, total=len(line))


def format_queue(queue: QueueResponse, now: Now, width: int | None = None) -> str:
    from gpudev.client.ssh import id8

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
    return format_table(header, rows, _QUEUE_NUMBERS, width)


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


_ACCURACY_NUMBERS = frozenset({1, 2, 3, 4, 5, 6})


def format_preview(preview: PreviewResponse, now: Now) -> str:
    if preview.starts_now:
        return "It would start now."
    if preview.estimated_start_at is None:
        return f"It is not known when it would start. {preview.current_detailed_status or ''}".strip()
    lines = [f"It would start at {format_wait(preview.estimated_start_at, now)} at the latest."]
    if preview.likely_start:
        first, last = preview.likely_start
        lines.append(f"Likely between {format_moment(first, now)} and {format_moment(last, now)}.")
    lines += [preview.current_detailed_status] if preview.current_detailed_status else []
    lines += (
        ["Sooner:", *(f"  {_format_nearby(one, now)}" for one in preview.nearby)] if preview.nearby else []
    )
    return "\n".join(lines)


def format_accuracy(answer: AccuracyResponse) -> str:
    header = ("TYPE", "STARTED", "KEPT", "PROMISE OFF", "LIKELY OFF", "BIAS", "IN WINDOW")
    rows = [
        (
            gpu_type,
            str(one.started),
            f"{one.promises_kept:.0%}",
            _minutes(one.promise_error_minutes),
            _minutes(one.likely_error_minutes),
            f"{one.bias:.2f}" if one.bias is not None else "-",
            f"{one.coverage:.0%}" if one.coverage is not None else "-",
        )
        for gpu_type, one in answer.accuracy.items()
    ]
    return format_table(header, rows, _ACCURACY_NUMBERS)


def _minutes(minutes: float | None) -> str:
    return format_span(timedelta(minutes=minutes)) if minutes is not None else "-"


def _format_nearby(one: Nearby, now: Now) -> str:
    from gpudev.cli.render.reservations import format_gpus

    when = "now" if one.starts_now else f"at {format_wait(one.estimated_start_at, now)}"
    return f"{format_gpus(one.gpu_type, one.gpu_count)} for {format_hours(one.duration_hours)}: {when}"


_HEADER = ("QUOTA", "GPUS", "OVER 4 HOURS", "WAITING", "RESERVED GPU-HOURS", "USED OR RESERVED GPU-HOURS")


def format_quotas(quotas: Sequence[QuotaStatus], width: int | None = None) -> str:
    """Only the columns in which somebody has a limit."""
    rows = [_cells(one) for one in quotas]
    shown = [column for column in range(len(_HEADER)) if any(row[column] for row in rows)]
    header = [_HEADER[column] for column in shown]
    return format_table(header, [[row[column] for column in shown] for row in rows], width=width)


def _cells(one: QuotaStatus) -> tuple[str, ...]:
    return (
        one.gpu_type,
        _cell(one.gpus, one.max_gpus),
        _cell(one.long_gpus or 0, one.max_long_gpus),
        _cell(one.waiting, one.max_waiting),
        _cell(one.reserved_gpu_hours, one.max_reserved_gpu_hours),
        _period_cell(one),
    )


def _cell(used: float, limit: float | None) -> str:
    return "" if limit is None else f"{_number(used)} of {_number(limit)}"


def _period_cell(one: QuotaStatus) -> str:
    cell = _cell(one.gpu_hours, one.max_gpu_hours)
    return f"{cell} in {_number(one.period_days)} days" if cell else ""


def _number(value: float) -> str:
    """At most one decimal place."""
    return f"{value:.1f}".removesuffix(".0")
