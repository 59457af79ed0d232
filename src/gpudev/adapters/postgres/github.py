"""GitHub users: which of them each of our users is, how that is proved, and the keys they have published."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

import asyncpg

from gpudev.adapters.postgres.audit import audit_columns
from gpudev.adapters.postgres.pool import Database
from gpudev.adapters.postgres.queries import load_queries
from gpudev.domain.audit import AuditEntry
from gpudev.domain.github import Binding
from gpudev.domain.names import UserId
from gpudev.ports.identity import StoredChallenge, StoredKeys

_SQL = load_queries("github_bindings")
_KEYS = load_queries("github_keys")


class PostgresGitHub:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_challenge(self, challenge: StoredChallenge, now: datetime) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(*_SQL.bind("forget_old_challenges", now=now))
            await connection.execute(*_SQL.bind("add_challenge", **asdict(challenge)))

    async def take_challenge(self, challenge_hash: bytes, user_id: UserId, now: datetime) -> str | None:
        github_user: str | None = await self._database.fetch_value(
            *_SQL.bind("take_challenge", challenge_hash=challenge_hash, user_id=user_id, now=now)
        )
        return github_user

    async def find_binding(self, user_id: UserId) -> Binding | None:
        row = await self._database.fetch_row(*_SQL.bind("find", user_id=user_id))
        return Binding(row["github_user"], row["github_proved_at"]) if row else None

    async def bind(self, user_id: UserId, binding: Binding, audit: AuditEntry) -> bool:
        try:
            await self._database.execute(
                *_SQL.bind(
                    "bind",
                    user_id=user_id,
                    github_user=binding.github_user,
                    proved_at=binding.proved_at,
                    **audit_columns([audit]),
                )
            )
        except asyncpg.UniqueViolationError:
            return False
        return True

    async def find_keys(self, github_user: str) -> StoredKeys | None:
        row = await self._database.fetch_row(*_KEYS.bind("find", github_user=github_user))
        return StoredKeys(tuple(row["public_keys"]), row["fetched_at"]) if row else None

    async def keep_keys(self, github_user: str, stored: StoredKeys) -> None:
        await self._database.execute(
            *_KEYS.bind(
                "keep", github_user=github_user, public_keys=stored.keys, fetched_at=stored.fetched_at
            )
        )
