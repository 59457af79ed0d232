"""The use of reservations: its measurements, and sums over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from gpudev.adapters.postgres.pool import Database
from gpudev.adapters.postgres.queries import load_queries
from gpudev.domain.idle import Signal
from gpudev.domain.names import ReservationId
from gpudev.ports.reports import Sample, UsagePoint, UsageReport, UsageSum

_SQL = load_queries("reports")
_USAGES = load_queries("usages")


class PostgresReports:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def sum_usage(
        self, report: UsageReport, prices: Mapping[str, float], now: datetime
    ) -> tuple[UsageSum, ...]:
        statement = _SQL.bind(
            "usage",
            begin=report.begin,
            end=report.end,
            now=now,
            by=report.by,
            gpu_types=list(prices),
            prices=list(prices.values()),
        )
        rows = await self._database.fetch(*statement)
        return tuple(UsageSum(**dict(row)) for row in rows)

    async def add_samples(self, samples: Sequence[Sample]) -> None:
        await self._database.execute(*_add(samples))

    async def list_points(self, reservation_id: ReservationId, count: int) -> tuple[UsagePoint, ...]:
        rows = await self._database.fetch(
            *_USAGES.bind("list_points", reservation_id=reservation_id, count=count)
        )
        return tuple(UsagePoint(**dict(row)) for row in rows)


def _add(samples: Sequence[Sample]) -> tuple[Any, ...]:
    usages = [sample.usage for sample in samples]
    return _USAGES.bind(
        "add",
        ids=[sample.reservation_id for sample in samples],
        times=[usage.at for usage in usages],
        **{signal.value: [usage.signals.get(signal) for usage in usages] for signal in Signal},
        simulated=[usage.is_simulated for usage in usages],
        idle_since=[sample.idle_since for sample in samples],
        signals=[sample.signals for sample in samples],
    )
