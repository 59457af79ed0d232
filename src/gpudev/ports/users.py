"""Who uses the system, and with which keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
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

    async def add_key(self, user_id: UserId, key: NewKey, audit: Sequence[AuditEntry] = ()) -> None: ...

    async def revoke_keys(self, audit: AuditEntry) -> None:
        """No key that was ever given works any more; everybody logs in again."""
        ...

    async def find_by_name(self, username: str) -> User | None: ...

    async def list_all(self) -> tuple[UserSummary, ...]:
        """Every user there ever was, by name."""
        ...

    async def set_active(self, username: str, *, is_active: bool, audit: AuditEntry) -> User:
        """Let a user in, or lock one out and revoke all keys. Idempotent. `NotFound` if there is none."""
        ...

    async def use_proof(self, proof: bytes, now: datetime, expires_at: datetime) -> bool:
        """Spend a one-time proof of identity; False if it was spent before, here or on another replica."""
        ...
