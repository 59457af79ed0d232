"""What admins see, on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class UserDetail:
    user_id: int
    username: str
    is_active: bool
    created_at: datetime
    live_reservations: int
    last_used_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserList:
    users: list[UserDetail]


@dataclass(frozen=True, slots=True, kw_only=True)
class UserChanged:
    username: str
    is_active: bool
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntryDetail:
    entry_id: int
    at: datetime
    username: str
    """Who; empty after a login that failed."""
    action: str
    target: str
    address: str
    outcome: str
    """done or refused."""
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage:
    """Newest first."""

    entries: list[AuditEntryDetail]
    next_before: int | None = None
    """Send it as `before` for the next page; left out on the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFinding:
    """Something in the audit log that is not as it was sealed."""

    kind: str
    """changed, missing, added, broken_seal or broken_chain."""
    message: str
    entry_id: int | None = None
    seal_number: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditVerification:
    is_intact: bool
    seals: int
    sealed_entries: int
    waiting_entries: int
    """Too new to have a seal."""
    findings: list[AuditFinding]
    last_seal: int | None = None
    last_hash: str | None = None
    """Note both elsewhere: with them, a log that was cut off or made anew is found as well."""
