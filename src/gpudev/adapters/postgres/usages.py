"""Measurements of the use of dev servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpudev.adapters.postgres.pool import Database
from gpudev.adapters.postgres.queries import load_queries
from gpudev.domain.idle import Signal
from gpudev.domain.names import ReservationId
from gpudev.ports.usage import Sample, UsagePoint

_SQL = load_queries("usages")


class PostgresUsages:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, samples: Sequence[Sample]) -> None:
        await self._database.execute(*_SQL.bind("add", samples=[_row_of(sample) for sample in samples]))

    async def list_points(self, reservation_id: ReservationId, count: int) -> tuple[UsagePoint, ...]:
        rows = await self._database.fetch(
            *_SQL.bind("list_points", reservation_id=reservation_id, count=count)
        )
        return tuple(UsagePoint(**dict(row)) for row in rows)


def _row_of(sample: Sample) -> dict[str, Any]:
    usage = sample.usage
    return {
        "reservation_id": sample.reservation_id,
        "at": usage.at.isoformat(),
        **{signal.value: usage.signals.get(signal) for signal in Signal},
        "is_simulated": usage.is_simulated,
        "idle_since": sample.idle_since.isoformat() if sample.idle_since else None,
        "signals": sample.signals,
    }
