"""The public keys of GitHub users as they were read last."""

from __future__ import annotations

from gpudev.adapters.postgres.pool import Database
from gpudev.adapters.postgres.queries import load_queries
from gpudev.ports.identity import StoredKeys

_SQL = load_queries("github_keys")


class PostgresGitHubKeys:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, github_user: str) -> StoredKeys | None:
        row = await self._database.fetch_row(*_SQL.bind("find", github_user=github_user))
        return StoredKeys(tuple(row["public_keys"]), row["fetched_at"]) if row else None

    async def keep(self, github_user: str, stored: StoredKeys) -> None:
        await self._database.execute(
            *_SQL.bind("keep", github_user=github_user, public_keys=stored.keys, fetched_at=stored.fetched_at)
        )
