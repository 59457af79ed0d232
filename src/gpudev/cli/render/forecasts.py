"""What would become of a request, and how good the forecasts are, in words."""

from __future__ import annotations

from datetime import timedelta

from gpudev.cli.render.reservations import format_gpus
from gpudev.cli.render.table import format_table
from gpudev.cli.render.times import Now, format_hours, format_moment, format_span, format_wait
from gpudev.wire.queue import AccuracyResponse, Nearby, PreviewResponse

_NUMBERS = frozenset({1, 2, 3, 4, 5, 6})


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
    return format_table(header, rows, _NUMBERS)


def _minutes(minutes: float | None) -> str:
    return format_span(timedelta(minutes=minutes)) if minutes is not None else "-"


def _format_nearby(one: Nearby, now: Now) -> str:
    when = "now" if one.starts_now else f"at {format_wait(one.estimated_start_at, now)}"
    return f"{format_gpus(one.gpu_type, one.gpu_count)} for {format_hours(one.duration_hours)}: {when}"
