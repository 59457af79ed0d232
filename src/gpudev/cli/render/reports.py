"""Reports as a table and as comma-separated values."""

from __future__ import annotations

import csv
import io

from gpudev.cli.render.table import format_table
from gpudev.wire.admin import UsageRow, UsageTable

_COLUMNS = (
    "reservations",
    "gpu_hours",
    "mean_wait_minutes",
    "idle_share",
    "early_releases",
    "cost",
)


def format_usage_table(table: UsageTable, width: int | None = None) -> str:
    header = (table.by.upper(), "RESERVATIONS", "GPU HOURS", "MEAN WAIT", "IDLE", "RELEASED EARLY", "COST")
    return format_table(header, [_cells(row) for row in table.rows], width=width)


def format_csv(table: UsageTable) -> str:
    """Full precision; what is not known is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((table.by, *_COLUMNS))
    for row in table.rows:
        writer.writerow(
            (row.key, *("" if (cell := getattr(row, name)) is None else cell for name in _COLUMNS))
        )
    return text.getvalue().rstrip("\n")


def _cells(row: UsageRow) -> tuple[str, ...]:
    return (
        row.key,
        str(row.reservations),
        f"{row.gpu_hours:.1f}",
        "" if row.mean_wait_minutes is None else f"{row.mean_wait_minutes:.1f} min",
        "" if row.idle_share is None else f"{100 * row.idle_share:.0f}%",
        str(row.early_releases),
        "" if row.cost is None else f"{row.cost:.2f}",
    )
