"""What admins see, on the wire: users, the audit log, reports, disks, nodes and dead letters."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from gpudev.texts.vocabulary import NodeState, Status
from gpudev.wire.message import message
from gpudev.wire.text import Text, Word


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


@message
class DeadLetterDetail:
    letter_id: str
    """Its id: the queue that it was in, and a number."""
    queue: str
    """gpu_reservations, disk_operations or notifications."""
    message: str
    """As it was sent, in JSON; at most the first 2000 characters."""
    error: str
    """Why it was given up; empty if it was given up by an earlier version."""
    died_at: datetime
    """When it was given up."""


@message
class DeadLetterList:
    dead_letters: list[DeadLetterDetail]
    """The newest first, at most 1000."""


@message
class DeadLetterChanged:
    letter_id: str
    """Which one."""
    message: str
    """What was done."""


@message
class NodeReservation:
    """A reservation that holds room on a node."""

    job_id: str
    """Its id."""
    name: str
    """Its name."""
    user: str
    """Whose it is."""
    status: Annotated[str, Word(*Status)]
    """Its status."""
    gpu_count: int
    """Its GPUs on this node."""
    expires_at: datetime | None = None
    """When it ends, once it is active."""


@message
class NodeDetail:
    name: str
    """Name of the node."""
    gpu_type: str
    """Its GPU type."""
    slots: int
    """Its GPUs, or the user slots of a CPU node; 0 if it is gone."""
    state: Annotated[str, Word(*NodeState)]
    """Whether it takes reservations. `closed`: the cluster itself places nothing there."""
    reservations: list[NodeReservation]
    """Those that hold room there, the first to end first."""
    reason: str | None = None
    """Why it is drained, if that was said."""
    drained_by: str | None = None
    """Who drained it."""
    drained_at: datetime | None = None
    """When it was drained."""
    emptied_at: datetime | None = None
    """Since when nothing is left on the drained node."""


@message
class NodeList:
    nodes: list[NodeDetail]
    """By type and name."""


@message
class DrainRequest:
    reason: Annotated[str, Text(200, code="bad_reason")] = ""
    """Why, in one line; the owners of reservations there read it."""


@message
class NodeChanged:
    node: NodeDetail
    """The node as it is now."""
    message: str
    """What was done, and what that means."""


@message
class UsageRow:
    key: str
    """The user, the GPU type or the day (UTC)."""
    reservations: int
    """How many ran in the span."""
    gpu_hours: float
    """GPUs times hours, of CPU types slots times hours, within the span."""
    early_releases: int
    """How many ended before their time, whyever."""
    mean_wait_minutes: float | None = None
    """From request to start, of those that started in the span."""
    idle_share: float | None = None
    """The part of the time in which nobody used them, 0 to 1, as far as it was measured."""
    cost: float | None = None
    """By the prices that the operator has set."""


@message
class UsageTable:
    begin: datetime
    """Where the span begins."""
    end: datetime
    """Where it ends."""
    by: str
    """`user`, `type` or `day`."""
    rows: list[UsageRow]
    """One a key, in order."""
