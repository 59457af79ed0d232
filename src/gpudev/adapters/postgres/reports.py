"""Sums over the use of reservations."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from gpudev.adapters.postgres.pool import Database
from gpudev.adapters.postgres.queries import load_queries
from gpudev.ports.reports import UsageReport, UsageSum

_SQL = load_queries("reports")


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
