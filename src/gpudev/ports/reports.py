"""What the use of reservations adds up to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol


class ReportKey(StrEnum):
    USER = "user"
    TYPE = "type"
    DAY = "day"


@dataclass(frozen=True, slots=True)
class UsageReport:
    """A span of time, and by what its use is added up."""

    begin: datetime
    end: datetime
    by: ReportKey


@dataclass(frozen=True, slots=True)
class UsageSum:
    key: str
    reservations: int
    gpu_hours: float
    mean_wait_minutes: float | None
    """From the request to the start, of those that started in the span."""
    idle_share: float | None
    """The part of the time in which nobody used it, as far as that was measured."""
    early_releases: int
    cost: float | None
    """Where a price is set."""


class Reports(Protocol):
    async def sum_usage(
        self, report: UsageReport, prices: Mapping[str, float], now: datetime
    ) -> tuple[UsageSum, ...]:
        """One sum a key. A reservation that runs counts until now."""
        ...
