"""API keys after they were issued, and the logins that failed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from gpudev.adapters.postgres.audit import write_audit
from gpudev.adapters.postgres.pool import Database
from gpudev.adapters.postgres.queries import load_queries
from gpudev.adapters.postgres.users import add_key
from gpudev.domain.audit import AuditEntry
from gpudev.domain.errors import Conflict, NotFound, Unauthenticated
from gpudev.domain.names import UserId
from gpudev.ports.users import Rotation, StoredKey

_SQL = load_queries("api_keys")
_FAILURES = load_queries("login_failures")


class PostgresApiKeys:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_of(self, user_id: UserId, current: bytes, now: datetime) -> tuple[StoredKey, ...]:
        rows = await self._database.fetch(*_SQL.bind("list_of", user_id=user_id, current=current, now=now))
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
            of_old = {"user_id": user_id, "key_hash": old, "now": now}
            login_ends_at = await connection.fetchval(
                *_SQL.bind("end_rotated", ends_at=rotation.old_ends_at, **of_old)
            )
            if login_ends_at is None:
                raise _not_rotated(
                    has_successor=await connection.fetchval(*_SQL.bind("has_successor", **of_old))
                )
            ends_at: datetime = min(new.expires_at, login_ends_at)
            key = replace(new, expires_at=ends_at, login_ends_at=login_ends_at)
            await connection.execute(*add_key(user_id, key, [audit]))
            return ends_at

    async def revoke(self, user_id: UserId, prefix: str, audit: AuditEntry) -> None:
        async with self._database.transaction() as connection:
            found = await connection.fetch(*_SQL.bind("list_with_prefix", user_id=user_id, prefix=prefix))
            if not found:
                raise NotFound("api_key_not_found", prefix=prefix)
            if len(found) > 1:
                raise Conflict("api_key_ambiguous", code="ambiguous_key", count=len(found), prefix=prefix)
            if found[0]["is_active"]:
                await connection.execute(*_SQL.bind("revoke", key_id=found[0]["key_id"]))
                await connection.execute(*write_audit([audit]))

    async def list_standing(self, key_hashes: Collection[bytes], now: datetime) -> frozenset[bytes]:
        rows = await self._database.fetch(*_SQL.bind("list_standing", key_hashes=list(key_hashes), now=now))
        return frozenset(row["key_hash"] for row in rows)

    async def note_uses(self, uses: Mapping[bytes, datetime]) -> None:
        # In one order everywhere, so that two processes do not lock the same keys crosswise.
        hashes = sorted(uses)
        times = [uses[key_hash] for key_hash in hashes]
        await self._database.execute(*_SQL.bind("note_uses", key_hashes=hashes, times=times))


def _not_rotated(*, has_successor: bool) -> Conflict | Unauthenticated:
    if has_successor:
        return Conflict("api_key_has_successor", code="key_has_successor")
    return Unauthenticated("api_key_revoked_or_expired")


class PostgresLoginFailures:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def count(self, origin: str, now: datetime, window: timedelta) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(*_FAILURES.bind("forget_old", before=now - window))
            await connection.execute(*_FAILURES.bind("count", origin=origin, at=now))

    async def find_blocking(self, origin: str, since: datetime, limit: int) -> datetime | None:
        blocking: datetime | None = await self._database.fetch_value(
            *_FAILURES.bind("find_blocking", origin=origin, since=since, allowed=limit - 1)
        )
        return blocking
