"""Measurements of the use of dev servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpudev.adapters.postgres.pool import Database
from gpudev.adapters.postgres.queries import load_queries
from gpudev.domain.idle import Signal
from gpudev.domain.names import ReservationId
from gpudev.ports.reports import Sample, UsagePoint

_SQL = load_queries("usages")


class PostgresUsages:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, samples: Sequence[Sample]) -> None:
        await self._database.execute(*_add(samples))

    async def list_points(self, reservation_id: ReservationId, count: int) -> tuple[UsagePoint, ...]:
        rows = await self._database.fetch(
            *_SQL.bind("list_points", reservation_id=reservation_id, count=count)
        )
        return tuple(UsagePoint(**dict(row)) for row in rows)


def _add(samples: Sequence[Sample]) -> tuple[Any, ...]:
    usages = [sample.usage for sample in samples]
    return _SQL.bind(
        "add",
        ids=[sample.reservation_id for sample in samples],
        times=[usage.at for usage in usages],
        **{signal.value: [usage.signals.get(signal) for usage in usages] for signal in Signal},
        simulated=[usage.is_simulated for usage in usages],
        idle_since=[sample.idle_since for sample in samples],
        signals=[sample.signals for sample in samples],
    )
