"""API keys after they were issued, and the logins that failed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from gpudev.adapters.postgres.audit import audit_rows
from gpudev.adapters.postgres.pool import Database
from gpudev.adapters.postgres.queries import load_queries
from gpudev.domain.audit import AuditEntry
from gpudev.domain.errors import Conflict, NotFound, Unauthenticated
from gpudev.domain.names import UserId
from gpudev.ports.api_keys import Rotation, StoredKey

_SQL = load_queries("api_keys")
_USERS = load_queries("users")
_FAILURES = load_queries("login_failures")
_AUDIT = load_queries("audit")


class PostgresApiKeys:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_of(self, user_id: UserId, current: bytes, now: datetime) -> tuple[StoredKey, ...]:
        rows = await self._database.fetch(_SQL["list_of"], user_id, current, now)
        return tuple(
            StoredKey(
                prefix=row["key_prefix"],
                created_at=row["created_at"],
                expires_at=row["expires_at"],
                last_used_at=row["last_used_at"],
                is_active=row["is_active"],
                is_current=row["is_current"],
            )
            for row in rows
        )

    async def rotate(self, rotation: Rotation, now: datetime, audit: AuditEntry) -> datetime:
        user_id, old, new = rotation.user_id, rotation.old_hash, rotation.new
        async with self._database.transaction() as connection:
            login_ends_at = await connection.fetchval(
                _SQL["end_rotated"], user_id, old, rotation.old_ends_at, now
            )
            if login_ends_at is None:
                raise _not_rotated(
                    has_successor=await connection.fetchval(_SQL["has_successor"], user_id, old, now)
                )
            ends_at: datetime = min(new.expires_at, login_ends_at)
            key = (new.key_hash, new.prefix, ends_at, login_ends_at)
            await connection.execute(_USERS["add_key"], user_id, *key, audit_rows([audit]))
            return ends_at

    async def revoke(self, user_id: UserId, prefix: str, audit: AuditEntry) -> None:
        async with self._database.transaction() as connection:
            found = await connection.fetch(_SQL["list_with_prefix"], user_id, prefix)
            if not found:
                raise NotFound("api_key_not_found", prefix=prefix)
            if len(found) > 1:
                raise Conflict("api_key_ambiguous", code="ambiguous_key", count=len(found), prefix=prefix)
            if found[0]["is_active"]:
                await connection.execute(_SQL["revoke"], found[0]["key_id"])
                await connection.execute(_AUDIT["write"], audit_rows([audit]))

    async def list_standing(self, key_hashes: Collection[bytes], now: datetime) -> frozenset[bytes]:
        rows = await self._database.fetch(_SQL["list_standing"], list(key_hashes), now)
        return frozenset(row["key_hash"] for row in rows)

    async def note_uses(self, uses: Mapping[bytes, datetime]) -> None:
        # In one order everywhere, so that two processes do not lock the same keys crosswise.
        hashes = sorted(uses)
        await self._database.execute(_SQL["note_uses"], hashes, [uses[key_hash] for key_hash in hashes])


def _not_rotated(*, has_successor: bool) -> Conflict | Unauthenticated:
    if has_successor:
        return Conflict("api_key_has_successor", code="key_has_successor")
    return Unauthenticated("api_key_revoked_or_expired")


class PostgresLoginFailures:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def count(self, origin: str, now: datetime, window: timedelta) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(_FAILURES["forget_old"], now - window)
            await connection.execute(_FAILURES["count"], origin, now)

    async def find_blocking(self, origin: str, since: datetime, limit: int) -> datetime | None:
        blocking: datetime | None = await self._database.fetch_value(
            _FAILURES["find_blocking"], origin, since, limit - 1
        )
        return blocking
