"""Reports on the wire."""

from __future__ import annotations

from datetime import datetime

from gpudev.wire.message import message


@message
class UsageRow:
    key: str
    """The user, the GPU type or the day (UTC)."""
    reservations: int
    """How many ran in the span."""
    gpu_hours: float
    """GPUs times hours, of CPU types slots times hours, within the span."""
    early_releases: int
    """How many ended before their time, whyever."""
    mean_wait_minutes: float | None = None
    """From request to start, of those that started in the span."""
    idle_share: float | None = None
    """The part of the time in which nobody used them, 0 to 1, as far as it was measured."""
    cost: float | None = None
    """By the prices that the operator has set."""


@message
class UsageTable:
    begin: datetime
    """Where the span begins."""
    end: datetime
    """Where it ends."""
    by: str
    """`user`, `type` or `day`."""
    rows: list[UsageRow]
    """One a key, in order."""
