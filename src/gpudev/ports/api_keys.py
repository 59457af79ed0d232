"""API keys after they were issued: listed, rotated, revoked, and noted as used."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from gpudev.domain.audit import AuditEntry
from gpudev.domain.names import UserId
from gpudev.ports.users import NewKey


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key as its owner may see it."""

    prefix: str
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None
    is_active: bool
    """Neither expired nor revoked."""
    is_current: bool
    """The key that asked."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """A new key in the place of the one that asks for it."""

    user_id: UserId
    old_hash: bytes
    old_ends_at: datetime
    new: NewKey


class ApiKeys(Protocol):
    async def list_of(self, user_id: UserId, current: bytes, now: datetime) -> tuple[StoredKey, ...]:
        """The user's newest keys, newest first; `current` is the hash of the one that asks."""
        ...

    async def rotate(self, rotation: Rotation, now: datetime, audit: AuditEntry) -> datetime:
        """Add the new key, and let the old one end then, or when it would have ended anyway, if sooner.

        When the new one ends, which is never after the login that the old one belongs to. A key has one
        successor, however many ask for it at once: `Conflict` with the code `key_has_successor` if it has
        one. `Unauthenticated` if the old one does not work any more. Nothing is written then.
        """
        ...

    async def revoke(self, user_id: UserId, prefix: str, audit: AuditEntry) -> None:
        """End a key of this user; one that has ended already stays so, and nothing is written.

        `NotFound` if the user has none with this prefix, `Conflict` if there are several.
        """
        ...

    async def list_standing(self, key_hashes: Collection[bytes], now: datetime) -> frozenset[bytes]:
        """Those that are not revoked, of users who are not disabled, and of logins that have not ended.

        A key that has expired, or was rotated, stands as long as its login.
        """
        ...

    async def note_uses(self, uses: Mapping[bytes, datetime]) -> None:
        """Remember when keys, by their hash, were last used."""
        ...


class LoginFailures(Protocol):
    """Failed logins by where they came from, counted for all replicas together."""

    async def count(self, origin: str, now: datetime, window: timedelta) -> None:
        """One more; what is older than the window is forgotten."""
        ...

    async def find_blocking(self, origin: str, since: datetime, limit: int) -> datetime | None:
        """When the latest `limit`-th failure since then was: until it is too old, there is one too many."""
        ...
