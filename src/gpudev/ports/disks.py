"""Disks: what owners request of them, the turns that carry it out, and reconciliation with the storage.

Every method is one transaction and raises `StoreUnavailable` when the database does not answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from gpudev.domain.audit import AuditEntry
from gpudev.domain.disk import Disk, DiskEvent, DiskId, DiskOperation, SnapshotId, VolumeId
from gpudev.domain.names import OperationId, UserId
from gpudev.domain.plans.disk_turn import RecordDisk
from gpudev.domain.plans.reconciliation import Change, LedgerRow, Statistics
from gpudev.domain.volume import FileListing
from gpudev.ports.turns import Lease
from gpudev.texts.fact import Fact
from gpudev.texts.vocabulary import DiskOperationKind, OperationStatus


@dataclass(frozen=True, slots=True)
class DiskClaim:
    """A disk that is leased for one turn, and what was read with it."""

    lease: Lease
    disk: Disk
    operations: tuple[DiskOperation, ...]
    wanted_snapshots: frozenset[SnapshotId]


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    snapshot_id: SnapshotId
    volume_id: VolumeId
    started_at: datetime
    size_gb: int
    used_bytes: int | None


@dataclass(frozen=True, slots=True)
class StoredContent:
    """Where the file listing of a snapshot is; both empty if there is none."""

    snapshot_id: SnapshotId
    started_at: datetime
    text: str | None
    address: str | None
    """Outside the database; see `ports.volumes.Listings`."""


@dataclass(frozen=True, slots=True)
class StoredDiskOperation:
    operation_id: OperationId
    disk_id: DiskId
    disk_name: str
    kind: DiskOperationKind
    status: OperationStatus
    error: Fact | None
    requested_at: datetime
    finished_at: datetime | None
    is_deleted: bool
    delete_date: datetime | None
    disk_version: int


class Disks(Protocol):
    async def find(self, user_id: UserId, name: str, *, is_deleted: bool = False) -> Disk | None:
        """The disk of that name; of deleted ones the one that was deleted last."""
        ...

    async def get(self, disk_id: DiskId) -> Disk:
        """The disk with this id; `NotFound` if there is none."""
        ...

    async def list_of(self, user_id: UserId, *, is_deleted: bool = False) -> tuple[Disk, ...]:
        """The disks of a user: those there are, or those that are deleted and can be restored."""
        ...

    async def create(self, disk: Disk, operation: DiskOperation, audit: Sequence[AuditEntry] = ()) -> None:
        """A new disk, its operation and its message. `Conflict` with `disk_exists` if its name is taken."""
        ...

    async def request(
        self, record: RecordDisk, operation: DiskOperation, audit: Sequence[AuditEntry] = ()
    ) -> Disk:
        """A guarded write, the operation that it asks for, and its message. `Stale` if the row moved on."""
        ...

    async def clone(
        self,
        copy: Disk,
        source: RecordDisk | None,
        operation: DiskOperation,
        audit: Sequence[AuditEntry] = (),
    ) -> None:
        """A new disk, and with it, where that is needed, the source's move to a snapshot."""
        ...

    async def claim(self, disk_id: DiskId, lease: timedelta) -> DiskClaim | None:
        """Lease a disk for one turn; None while another process has it, or when there is none."""
        ...

    async def record(self, claim: DiskClaim, record: RecordDisk) -> Disk:
        """The guarded write: change + event + outcomes. `Stale` if the row or the lease moved on.

        The next turn is due at once, so that whatever follows from the change survives a crash.
        """
        ...

    async def bury(
        self, claim: DiskClaim, record: RecordDisk, error: str = "", message_ids: Sequence[int] = ()
    ) -> None:
        """Fail the operations that our code fails on, send a dead letter for them, and end the lease."""
        ...

    async def list_stuck(self) -> tuple[Disk, ...]:
        """Everybody's that have a problem."""
        ...

    async def list_snapshots(self, disk_id: DiskId) -> tuple[StoredSnapshot, ...]:
        """Complete ones that are still there, the newest first."""
        ...

    async def find_content(self, disk_id: DiskId) -> StoredContent | None:
        """Of the newest snapshot."""
        ...

    async def keep_listing(
        self, snapshot_id: SnapshotId, text: str | None, address: str | None, used_bytes: int
    ) -> None:
        """Keep the files of a snapshot: as text, or as the address where the text is."""
        ...

    async def keep_home_listing(self, disk_id: DiskId, listing: FileListing) -> None:
        """What was on it when its last server went; it waits for the snapshot that it belongs to."""
        ...

    async def take_home_listing(self, disk_id: DiskId) -> FileListing | None:
        """Once: another snapshot has other files."""
        ...

    async def list_events(self, disk_id: DiskId) -> tuple[DiskEvent, ...]:
        """What happened to a disk, in order."""
        ...

    async def get_operation(self, operation_id: OperationId, user_id: UserId | None) -> StoredDiskOperation:
        """One of this user's, or anybody's where no user is given."""
        ...


@dataclass(frozen=True, slots=True)
class StoredReconciliation:
    at: datetime
    reconciled_by: str
    statistics: Statistics
    remarks: tuple[Fact, ...]


class DiskLedger(Protocol):
    def lock(self) -> AbstractAsyncContextManager[bool]:
        """One reconciliation at a time, in all processes; False: another is at it."""
        ...

    async def list_rows(self) -> tuple[LedgerRow, ...]:
        """Every disk there ever was."""
        ...

    async def apply(self, change: Change, now: datetime) -> bool:
        """One change, all of it or nothing; False if the row moved on meanwhile.

        `Conflict` if the database's own rules forbid it, or if nobody knows the user of an import.
        """
        ...

    async def save(self, done: StoredReconciliation) -> None:
        """Keep what a reconciliation found."""
        ...

    async def find_last(self) -> StoredReconciliation | None:
        """What the last reconciliation found; None: there was none."""
        ...
