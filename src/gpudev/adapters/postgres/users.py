"""Users: their API keys, their identities, and the one-time proofs and failures of their logins."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from gpudev.adapters.postgres.audit import audit_columns, write_audit
from gpudev.adapters.postgres.pool import Database, Row
from gpudev.adapters.postgres.queries import load_queries
from gpudev.domain.audit import AuditEntry
from gpudev.domain.errors import Conflict, NotAllowed, NotFound, Unauthenticated
from gpudev.domain.identity import Identity
from gpudev.domain.names import UserId
from gpudev.ports.users import NewKey, Rotation, StoredKey, User, UserSummary

_SQL = load_queries("users")
_KEYS = load_queries("api_keys")
_FAILURES = load_queries("login_failures")
_IDENTITIES = load_queries("identities")


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

    async def list_keys(self, user_id: UserId, current: bytes, now: datetime) -> tuple[StoredKey, ...]:
        rows = await self._database.fetch(*_KEYS.bind("list_of", user_id=user_id, current=current, now=now))
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

    async def rotate_key(self, rotation: Rotation, now: datetime, audit: AuditEntry) -> datetime:
        user_id, old, new = rotation.user_id, rotation.old_hash, rotation.new
        async with self._database.transaction() as connection:
            of_old = {"user_id": user_id, "key_hash": old, "now": now}
            login_ends_at = await connection.fetchval(
                *_KEYS.bind("end_rotated", ends_at=rotation.old_ends_at, **of_old)
            )
            if login_ends_at is None:
                raise _not_rotated(
                    has_successor=await connection.fetchval(*_KEYS.bind("has_successor", **of_old))
                )
            ends_at: datetime = min(new.expires_at, login_ends_at)
            key = replace(new, expires_at=ends_at, login_ends_at=login_ends_at)
            await connection.execute(*add_key(user_id, key, [audit]))
            return ends_at

    async def revoke_key(self, user_id: UserId, prefix: str, audit: AuditEntry) -> None:
        async with self._database.transaction() as connection:
            found = await connection.fetch(*_KEYS.bind("list_with_prefix", user_id=user_id, prefix=prefix))
            if not found:
                raise NotFound("api_key_not_found", prefix=prefix)
            if len(found) > 1:
                raise Conflict("api_key_ambiguous", code="ambiguous_key", count=len(found), prefix=prefix)
            if found[0]["is_active"]:
                await connection.execute(*_KEYS.bind("revoke", key_id=found[0]["key_id"]))
                await connection.execute(*write_audit([audit]))

    async def list_valid_keys(self, key_hashes: Collection[bytes], now: datetime) -> frozenset[bytes]:
        rows = await self._database.fetch(*_KEYS.bind("list_standing", key_hashes=list(key_hashes), now=now))
        return frozenset(row["key_hash"] for row in rows)

    async def note_key_uses(self, uses: Mapping[bytes, datetime]) -> None:
        # In one order everywhere, so that two processes do not lock the same keys crosswise.
        hashes = sorted(uses)
        times = [uses[key_hash] for key_hash in hashes]
        await self._database.execute(*_KEYS.bind("note_uses", key_hashes=hashes, times=times))

    async def count_login_failure(self, origin: str, now: datetime, window: timedelta) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(*_FAILURES.bind("forget_old", before=now - window))
            await connection.execute(*_FAILURES.bind("count", origin=origin, at=now))

    async def find_login_block(self, origin: str, since: datetime, limit: int) -> datetime | None:
        blocking: datetime | None = await self._database.fetch_value(
            *_FAILURES.bind("find_blocking", origin=origin, since=since, allowed=limit - 1)
        )
        return blocking

    async def admit(self, identity: Identity) -> User | None:
        row = await self._database.fetch_row(
            *_IDENTITIES.bind(
                "admit",
                username=identity.username,
                account=identity.account,
                role=identity.role,
                name=identity.name,
                arn=identity.arn,
            )
        )
        return User(UserId(row["user_id"]), row["username"], row["is_active"]) if row else None

    async def find_arn(self, user_id: UserId) -> str | None:
        arn: str | None = await self._database.fetch_value(*_IDENTITIES.bind("find_arn", user_id=user_id))
        return arn


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


def _not_rotated(*, has_successor: bool) -> Conflict | Unauthenticated:
    if has_successor:
        return Conflict("api_key_has_successor", code="key_has_successor")
    return Unauthenticated("api_key_revoked_or_expired")
