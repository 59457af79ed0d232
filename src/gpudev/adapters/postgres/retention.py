"""Rows that nobody needs any more, deleted in small batches."""

from __future__ import annotations

from datetime import datetime

from gpudev.adapters.postgres.pool import Database
from gpudev.adapters.postgres.queries import load_queries

_SQL = load_queries("retention")


class PostgresRetention:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def delete_keys(self, before: datetime, limit: int) -> int:
        return await self._delete("delete_keys", before, limit)

    async def delete_proofs(self, before: datetime, limit: int) -> int:
        return await self._delete("delete_proofs", before, limit)

    async def delete_messages(self, before: datetime, limit: int) -> int:
        return await self._delete("delete_messages", before, limit)

    async def _delete(self, name: str, before: datetime, limit: int) -> int:
        return int(await self._database.fetch_value(*_SQL.bind(name, before=before, limit=limit)))
