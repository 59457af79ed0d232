"""API keys on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RotatedKey:
    """A new key. The one that asked for it goes on working for a moment."""

    api_key: str
    key_prefix: str
    user_id: int
    username: str
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyInfo:
    key_prefix: str
    """The first 8 characters, by which a key is named; the rest is not kept anywhere."""
    created_at: datetime
    expires_at: datetime
    is_active: bool
    """Neither expired nor revoked."""
    is_current: bool
    """The key that this request came with."""
    last_used_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyList:
    keys: list[KeyInfo]


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokedKey:
    key_prefix: str
    message: str
