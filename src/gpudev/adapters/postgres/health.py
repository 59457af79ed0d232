"""Whether the database is there, with the queues and the schema that this version needs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import asyncpg

from gpudev.adapters.postgres.migrate import latest_version
from gpudev.adapters.postgres.pool import Database, Row
from gpudev.adapters.postgres.queries import load_queries
from gpudev.domain.errors import StoreUnavailable
from gpudev.domain.readiness import ControllerBeat

_SQL = load_queries("health")


class PostgresHealth:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def check(self) -> None:
        try:
            row = await self._database.fetch_row(_SQL["check"])
        except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError) as error:
            raise StoreUnavailable("schema_missing") from error
        except asyncpg.InsufficientPrivilegeError as error:
            raise StoreUnavailable("schema_not_granted") from error
        if row is None or not row["has_queue"]:
            raise StoreUnavailable("message_queue_missing")
        if row["schema_version"] < latest_version():
            raise StoreUnavailable("schema_too_old")
        if row["is_read_only"]:
            raise StoreUnavailable("database_read_only")

    async def beat(self, name: str, failing: Sequence[str]) -> None:
        await self._database.execute(*_SQL.bind("beat", name=name, failing=list(failing)))

    async def list_controllers(self) -> tuple[ControllerBeat, ...]:
        rows = await self._database.fetch(_SQL["list_controllers"])
        return tuple(map(_beat_from, rows))

    async def claim_for_cluster(self, cluster_id: str) -> bool:
        """Make the database this cluster's, if it is nobody's yet; False if it is another's."""
        owner = await self._database.fetch_value(*_SQL.bind("claim_for_cluster", cluster_id=cluster_id))
        return bool(owner == cluster_id)


def _beat_from(row: Row) -> ControllerBeat:
    return ControllerBeat(row["name"], timedelta(seconds=row["seconds"]), tuple(row["failing"]))
