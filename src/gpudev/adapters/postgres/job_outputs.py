"""The end of what submitted commands wrote."""

from __future__ import annotations

from gpudev.adapters.postgres.pool import Database
from gpudev.adapters.postgres.queries import load_queries
from gpudev.domain.names import ReservationId

_SQL = load_queries("job_outputs")


class PostgresJobOutputs:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep(self, reservation_id: ReservationId, output: str) -> None:
        await self._database.execute(*_SQL.bind("keep", reservation_id=reservation_id, output=output))

    async def find(self, reservation_id: ReservationId) -> str | None:
        output: str | None = await self._database.fetch_value(
            *_SQL.bind("find", reservation_id=reservation_id)
        )
        return output
