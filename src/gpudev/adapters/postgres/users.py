"""Users, their keys, and the one-time proofs that they logged in with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from gpudev.adapters.postgres.audit import audit_columns
from gpudev.adapters.postgres.pool import Database, Row
from gpudev.adapters.postgres.queries import load_queries
from gpudev.domain.audit import AuditEntry
from gpudev.domain.errors import NotAllowed, NotFound
from gpudev.domain.names import UserId
from gpudev.ports.users import NewKey, User, UserSummary

_SQL = load_queries("users")


class PostgresUsers:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def upsert(self, username: str) -> User:
        async with self._database.connection() as connection:
            rows = await connection.fetch(*_SQL.bind("upsert", username=username))
        if not rows:
            raise NotAllowed("username_of_aws_identity", code="username_taken", username=username)
        return _user_from(rows[0])

    async def find_by_key(self, key_hash: bytes, now: datetime) -> User | None:
        row = await self._database.fetch_row(*_SQL.bind("find_by_key", key_hash=key_hash, now=now))
        return replace(_user_from(row), identity=row["identity"]) if row else None

    async def add_key(self, user_id: UserId, key: NewKey, audit: Sequence[AuditEntry] = ()) -> None:
        await self._database.execute(*add_key(user_id, key, audit))

    async def revoke_keys(self, audit: AuditEntry) -> None:
        await self._database.execute(*_SQL.bind("revoke_keys", **audit_columns([audit])))

    async def find_by_name(self, username: str) -> User | None:
        row = await self._database.fetch_row(*_SQL.bind("find_by_name", username=username))
        return _user_from(row) if row else None

    async def list_all(self) -> tuple[UserSummary, ...]:
        rows = await self._database.fetch(_SQL["list_all"])
        return tuple(
            UserSummary(_user_from(row), row["created_at"], row["last_used_at"], row["live_reservations"])
            for row in rows
        )

    async def set_active(self, username: str, *, is_active: bool, audit: AuditEntry) -> User:
        row = await self._database.fetch_row(
            *_SQL.bind("set_active", username=username, is_active=is_active, **audit_columns([audit]))
        )
        if row is None:
            raise NotFound("user_not_found", username=username)
        return _user_from(row)

    async def use_proof(self, proof: bytes, now: datetime, expires_at: datetime) -> bool:
        async with self._database.connection() as connection:
            await connection.execute(*_SQL.bind("forget_old_proofs", now=now))
            used = await connection.fetchval(*_SQL.bind("use_proof", proof=proof, expires_at=expires_at))
            return used is True


def add_key(user_id: UserId, key: NewKey, audit: Sequence[AuditEntry]) -> tuple[Any, ...]:
    """The statement that issues a key."""
    return _SQL.bind(
        "add_key",
        user_id=user_id,
        key_hash=key.key_hash,
        prefix=key.prefix,
        expires_at=key.expires_at,
        login_ends_at=key.login_ends_at or key.expires_at,
        **audit_columns(audit),
    )


def _user_from(row: Row) -> User:
    return User(UserId(row["user_id"]), row["username"], row["is_active"])
