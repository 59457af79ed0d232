"""Quotas as a table: what is used, and the limit."""

from __future__ import annotations

from collections.abc import Sequence

from gpudev.cli.render.table import format_table
from gpudev.wire.cluster import QuotaStatus

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
