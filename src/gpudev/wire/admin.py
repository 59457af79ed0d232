"""What admins see, on the wire."""

from __future__ import annotations

from datetime import datetime

from gpudev.wire.message import message


@message
class UserDetail:
    user_id: int
    """Number of the user."""
    username: str
    """Name of the user."""
    is_active: bool
    """Not disabled."""
    created_at: datetime
    """When the user first logged in."""
    live_reservations: int
    """Reservations that are not over."""
    last_used_at: datetime | None = None
    """When a key of the user was last used, to the minute or so."""


@message
class UserList:
    users: list[UserDetail]
    """Everybody, by name."""


@message
class UserChanged:
    username: str
    """Name of the user."""
    is_active: bool
    """Not disabled."""
    message: str
    """What was done."""


@message
class AuditEntryDetail:
    entry_id: int
    """Number of the entry."""
    at: datetime
    """When it was written, by the clock of the database."""
    username: str
    """Who; empty after a login that failed."""
    action: str
    """What was done or tried."""
    target: str
    """On what: a reservation, a key's prefix, a user."""
    address: str
    """Where the request came from."""
    outcome: str
    """done or refused."""
    detail: str
    """More, in words."""


@message
class AuditPage:
    entries: list[AuditEntryDetail]
    """Newest first."""
    next_before: int | None = None
    """Send it as `before` for the next page; left out on the last one."""


@message
class AuditFinding:
    """Something in the audit log that is not as it was sealed."""

    kind: str
    """changed, missing, added, broken_seal or broken_chain."""
    message: str
    """The same in words."""
    entry_id: int | None = None
    """The entry, where it is about one."""
    seal_number: int | None = None
    """The seal, where it is about one."""


@message
class AuditVerification:
    is_intact: bool
    """Nothing was found."""
    seals: int
    """How many seals there are."""
    sealed_entries: int
    """How many entries are under them."""
    waiting_entries: int
    """How many are too new to have a seal."""
    findings: list[AuditFinding]
    """What is wrong."""
    last_seal: int | None = None
    """Number of the last seal. Noted elsewhere with its hash, it shows a log that was cut or made anew."""
    last_hash: str | None = None
    """Its hash, hexadecimal."""


@message
class DiskDrift:
    """How the rows of disks and their storage differ."""

    aws_volumes: int
    """Volumes in the storage."""
    db_records: int
    """Rows of disks."""
    synced: int
    """Rows whose volume is there."""
    orphaned_db_active: int
    """Rows of disks that are not deleted whose volume is not there."""
    orphaned_db_deleted: int
    """Rows of deleted disks whose volume is not there."""
    errors: int
    """What could not be looked at."""
    changes: list[str]
    """What a reconciliation would change, in words."""
    remarks: list[str]
    """What a person should look at."""
    problems: list[str]
    """Disks that cannot go on, with what to do."""
