"""API keys on the wire."""

from __future__ import annotations

from datetime import datetime

from gpudev.wire.message import message


@message
class RotatedKey:
    """A new key. The one that asked for it goes on working for a moment."""

    api_key: str
    """The key itself; it is told only now."""
    key_prefix: str
    """Its first 8 characters, by which it is named."""
    user_id: int
    """Number of the user."""
    username: str
    """Name of the user."""
    expires_at: datetime
    """When the key ends."""


@message
class KeyInfo:
    key_prefix: str
    """The first 8 characters, by which a key is named; the rest is not kept anywhere."""
    created_at: datetime
    """When it was given."""
    expires_at: datetime
    """When it ends, or ended."""
    is_active: bool
    """Neither expired nor revoked."""
    is_current: bool
    """The key that this request came with."""
    last_used_at: datetime | None = None
    """When it was last used, to the minute or so."""


@message
class KeyList:
    keys: list[KeyInfo]
    """The newest 100, newest first."""


@message
class RevokedKey:
    key_prefix: str
    """The key that has ended."""
    message: str
    """The same in words."""
