"""Users and their API keys: issued, listed, rotated, revoked, and noted as used."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from gpudev.domain.audit import AuditEntry
from gpudev.domain.names import UserId


@dataclass(frozen=True, slots=True)
class User:
    user_id: UserId
    username: str
    is_active: bool = True
    identity: str = field(default="", compare=False)
    """Who that is, as `domain.identity` writes it; known of a user who was found by a key."""


@dataclass(frozen=True, slots=True)
class UserSummary:
    """A user as admins see one."""

    user: User
    created_at: datetime
    last_used_at: datetime | None
    """When one of the user's keys was last used, to the minute or so."""
    live_reservations: int


@dataclass(frozen=True, slots=True)
class NewKey:
    """An API key as it is stored: its hash, and a prefix by which its owner knows it."""

    key_hash: bytes
    prefix: str
    expires_at: datetime
    login_ends_at: datetime | None = None
    """The end of the login that it belongs to; None: its own end."""


@dataclass(frozen=True, slots=True)
class ShownKey:
    """The key that a request came with, as it is stored, and when it came.

    A method `..._for_key` finds out whose it is and does its work for that user in one statement. Its answer
    begins with the user, None for a key that is unknown, revoked or expired, and is worth nothing until
    `app.identity.authentication.Authentication.check` has accepted that user.
    """

    key_hash: bytes
    at: datetime


class Users(Protocol):
    async def upsert(self, username: str) -> User:
        """The user of this name who has no identity elsewhere, made if new. A disabled user stays disabled.

        `NotAllowed` if the name belongs to an identity; see `ports.identity`.
        """
        ...

    async def find_by_key(self, key_hash: bytes, now: datetime) -> User | None:
        """The owner of a key that is active and not expired."""
        ...

    async def add_key(self, user_id: UserId, key: NewKey, audit: Sequence[AuditEntry] = ()) -> None:
        """Issue a key, with its audit entry."""
        ...

    async def revoke_keys(self, audit: AuditEntry) -> None:
        """No key that was ever given works any more; everybody logs in again."""
        ...

    async def find_by_name(self, username: str) -> User | None:
        """The user with this name; None if there is none."""
        ...

    async def list_all(self) -> tuple[UserSummary, ...]:
        """Every user there ever was, by name."""
        ...

    async def set_active(self, username: str, *, is_active: bool, audit: AuditEntry) -> User:
        """Let a user in, or lock one out and revoke all keys. Idempotent. `NotFound` if there is none."""
        ...

    async def use_proof(self, proof: bytes, now: datetime, expires_at: datetime) -> bool:
        """Spend a one-time proof of identity; False if it was spent before, here or on another replica."""
        ...


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
    async def list_keys(self, user_id: UserId, current: bytes, now: datetime) -> tuple[StoredKey, ...]:
        """The user's newest keys, newest first; `current` is the hash of the one that asks."""
        ...

    async def rotate_key(self, rotation: Rotation, now: datetime, audit: AuditEntry) -> datetime:
        """Add the new key, and let the old one end then, or when it would have ended anyway, if sooner.

        When the new one ends, which is never after the login that the old one belongs to. A key has one
        successor, however many ask for it at once: `Conflict` with the code `key_has_successor` if it has
        one. `Unauthenticated` if the old one does not work any more. Nothing is written then.
        """
        ...

    async def revoke_key(self, user_id: UserId, prefix: str, audit: AuditEntry) -> None:
        """End a key of this user; one that has ended already stays so, and nothing is written.

        `NotFound` if the user has none with this prefix, `Conflict` if there are several.
        """
        ...

    async def list_valid_keys(self, key_hashes: Collection[bytes], now: datetime) -> frozenset[bytes]:
        """Those that are not revoked, of users who are not disabled, and of logins that have not ended.

        A key that has expired, or was rotated, stands as long as its login.
        """
        ...

    async def note_key_uses(self, uses: Mapping[bytes, datetime]) -> None:
        """Remember when keys, by their hash, were last used."""
        ...


class LoginFailures(Protocol):
    """Failed logins by where they came from, counted for all replicas together."""

    async def count_login_failure(self, origin: str, now: datetime, window: timedelta) -> None:
        """One more; what is older than the window is forgotten."""
        ...

    async def find_login_block(self, origin: str, since: datetime, limit: int) -> datetime | None:
        """When the latest `limit`-th failure since then was: until it is too old, there is one too many."""
        ...
