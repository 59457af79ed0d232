"""Whether the database is there, with the queues and the schema that this version needs."""

from __future__ import annotations

import asyncpg

from gpudev.adapters.postgres.migrate import latest_version
from gpudev.adapters.postgres.pool import Database
from gpudev.adapters.postgres.queries import load_queries
from gpudev.domain.errors import StoreUnavailable

_SQL = load_queries("health")


class PostgresHealth:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def check(self) -> None:
        try:
            row = await self._database.fetch_row(_SQL["check"])
        except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError) as error:
            raise StoreUnavailable("The database has no schema yet.", hint=_MIGRATE) from error
        if row is None or not row["has_queue"]:
            raise StoreUnavailable("The message queue is missing.", hint=_MIGRATE)
        if row["schema_version"] < latest_version():
            raise StoreUnavailable("The database schema is older than this version.", hint=_MIGRATE)

    async def claim_for_cluster(self, cluster_id: str) -> bool:
        """Make the database this cluster's, if it is nobody's yet; False if it is another's."""
        owner = await self._database.fetch_value(_SQL["claim_for_cluster"], cluster_id)
        return bool(owner == cluster_id)


_MIGRATE = "Run: gpu-dev server migrate"
