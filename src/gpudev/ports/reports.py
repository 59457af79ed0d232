"""The use of reservations: what was measured of each, and what it adds up to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from gpudev.domain.idle import Usage
from gpudev.domain.names import ReservationId, UserId
from gpudev.domain.quota import Use
from gpudev.texts.fact import Fact


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


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement and what it means: since when the server is idle, None if it is busy."""

    reservation_id: ReservationId
    usage: Usage
    idle_since: datetime | None
    signals: Fact


@dataclass(frozen=True, slots=True)
class UsagePoint:
    """A stretch of time with the means of what was measured in it; None where nothing was."""

    at: datetime
    gpu_use: float | None
    gpu_memory: float | None
    cpu: float | None
    idle_share: float


class Usages(Protocol):
    async def add_samples(self, samples: Sequence[Sample]) -> None:
        """Keep samples, and what they mean with their reservations. Not a change of those."""
        ...

    async def list_points(self, reservation_id: ReservationId, count: int) -> tuple[UsagePoint, ...]:
        """The whole life of a reservation so far in so many stretches of equal length, the oldest first."""
        ...


class QuotaUses(Protocol):
    """What users have of each GPU type, as quotas count it."""

    async def read_use(
        self, user_id: UserId, since: Mapping[str, datetime], now: datetime
    ) -> Mapping[str, Use]:
        """What a user has of each of these GPU types; `since` is when the period of its GPU-hours began."""
        ...
