"""The cluster in words: what is free, what is wanted, and what is only simulated."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from gpudev.cli.render.folding import fold
from gpudev.cli.render.table import format_fields, format_table
from gpudev.cli.render.times import format_span
from gpudev.wire.cluster import ClusterStatus, TypeAvailability

NUMBERS = frozenset({1, 2, 3, 4, 5})


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
    return format_table(header, rows, NUMBERS, width) if rows else "No GPU types are on offer."


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
