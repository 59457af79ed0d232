"""What owners ask of their disks.

Each is a guarded write together with a recorded operation; a controller carries it out. A name that is
somebody else's, or nobody's, is not found.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from gpudev.app.identity.authentication import Caller
from gpudev.domain import disk as rules
from gpudev.domain.audit import AuditAction, AuditEntry
from gpudev.domain.disk import DEFAULT_SIZE_GB, Disk, DiskEvent, DiskId, DiskOperation, DiskSpec, DiskVolume
from gpudev.domain.errors import Conflict, Gone, NotFound, Stale
from gpudev.domain.names import OperationId
from gpudev.domain.plans.disk_turn import RecordDisk
from gpudev.ports.clock import Clock
from gpudev.ports.disks import Disks, StoredDiskOperation, StoredSnapshot
from gpudev.ports.volumes import Listings
from gpudev.texts.fact import Fact, fact
from gpudev.texts.vocabulary import DiskEventKind, DiskOperationKind, DiskState, OperationStatus

__all__ = ["Content", "DiskUseCases", "Renamed", "StoredDiskOperation", "StoredSnapshot"]

_TRIES = 5
_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Content:
    """The file listing of a disk's newest snapshot, as far as there is one."""

    text: str
    remark: Fact
    """What it is of, or why there is none."""
    taken: StoredSnapshot | None = None


@dataclass(frozen=True, slots=True)
class Renamed:
    disk: Disk
    snapshots_updated: int
    is_done: bool
    """False: the tags are still being written; the name is new already."""


@dataclass(frozen=True, slots=True)
class DiskUseCases:
    disks: Disks
    clock: Clock
    listings: Listings | None = None
    rename_patience: timedelta = timedelta(seconds=3)
    """How long the answer to a rename waits for volume and snapshots to say the new name."""

    async def list_all(self, caller: Caller, *, is_deleted: bool = False) -> tuple[Disk, ...]:
        return await self.disks.list_of(caller.user_id, is_deleted=is_deleted)

    async def get(self, caller: Caller, name: str) -> Disk:
        """One that is there, else the deleted one of that name."""
        for is_deleted in (False, True):
            found = await self._find(caller, name, is_deleted=is_deleted)
            if found is not None:
                return found
        raise not_found(name)

    async def create(self, caller: Caller, name: str, size_gb: int | None) -> DiskOperation:
        now = self.clock.now()
        spec = DiskSpec(
            user_id=caller.user_id,
            username=caller.username,
            name=rules.check_disk_name(name),
            size_gb=rules.check_size(DEFAULT_SIZE_GB if size_gb is None else size_gb),
            created_at=now,
        )
        disk = Disk(new_disk_id(), spec)
        operation = self._operation(DiskOperationKind.CREATE)
        entry = caller.entry(AuditAction.DISK_CREATE, name, detail=f"{disk.spec.size_gb} GB.")
        await self.disks.create(disk, operation, (entry,))
        return operation

    async def delete(self, caller: Caller, name: str) -> tuple[Disk, DiskOperation]:
        def decide(disk: Disk) -> Disk:
            return rules.soft_delete(disk, self.clock.now())

        entry = caller.entry(AuditAction.DISK_DELETE, name)
        return await self._change(caller, name, decide, self._operation(DiskOperationKind.DELETE), entry)

    async def grow(self, caller: Caller, name: str, size_gb: int) -> tuple[Disk, DiskOperation]:
        def decide(disk: Disk) -> Disk:
            rules.check_growth(disk, size_gb)
            return disk

        entry = caller.entry(AuditAction.DISK_GROW, name, detail=f"To {size_gb} GB.")
        operation = replace(self._operation(DiskOperationKind.GROW), size_gb=size_gb)
        return await self._change(caller, name, decide, operation, entry)

    async def rename(self, caller: Caller, name: str, new_name: str) -> Renamed:
        def decide(disk: Disk) -> Disk:
            return replace(disk, spec=replace(disk.spec, name=rules.check_disk_name(new_name)))

        entry = caller.entry(AuditAction.DISK_RENAME, name, detail=f"To {new_name}.")
        asked = self._operation(DiskOperationKind.RENAME)
        disk, operation = await self._change(caller, name, decide, asked, entry)
        is_done = await self._wait_for(operation.operation_id)
        return Renamed(disk, disk.snapshots.snapshot_count if is_done else 0, is_done)

    async def restore(self, caller: Caller, name: str, new_name: str = "") -> tuple[Disk, DiskOperation]:
        now = self.clock.now()
        operation = self._operation(DiskOperationKind.RESTORE)
        entry = caller.entry(AuditAction.DISK_RESTORE, name, detail=new_name)
        for _ in range(_TRIES):
            disk = await self._find(caller, name, is_deleted=True)
            if disk is None:
                await self.get(caller, name)
                raise Conflict("disk_not_deleted", name=name, code="disk_not_deleted")
            if disk.state is not DiskState.SOFT_DELETED:
                raise Gone("disk_purged", name=name, code="disk_purged")
            after = rules.restore(disk, rules.check_disk_name(new_name or name))
            event = DiskEvent(DiskEventKind.RESTORED, fact("disk_restored", name=after.spec.name), now)
            try:
                return await self.disks.request(
                    RecordDisk(disk, after, now, event), operation, (entry,)
                ), operation
            except Stale:
                continue
        raise _moving(name)

    async def clone(self, caller: Caller, name: str, new_name: str) -> tuple[DiskOperation, Fact]:
        """A copy of the disk as it is; of one that is in use, as it was when it was last given back."""
        rules.check_disk_name(new_name)
        operation = self._operation(DiskOperationKind.CLONE)
        entry = caller.entry(AuditAction.DISK_CLONE, name, detail=f"As {new_name}.")
        for _ in range(_TRIES):
            source = await self._get_present(caller, name)
            snapshots = await self.disks.list_snapshots(source.id)
            copy, change, answer = _plan_clone(source, snapshots, new_name, self.clock)
            try:
                await self.disks.clone(copy, change, operation, (entry,))
            except Stale:
                continue
            return operation, answer
        raise _moving(name)

    async def list_snapshots(self, caller: Caller, name: str) -> tuple[StoredSnapshot, ...]:
        return await self.disks.list_snapshots((await self.get(caller, name)).id)

    async def read_content(self, caller: Caller, name: str) -> Content:
        disk = await self.get(caller, name)
        snapshots = await self.disks.list_snapshots(disk.id)
        found = await self.disks.find_content(disk.id)
        if found is None or not snapshots:
            return Content("", fact("disk_without_snapshot", name=disk.spec.name))
        taken = snapshots[0]
        if found.address and self.listings is not None:
            return Content(await self.listings.read(found.address), _describe(taken), taken)
        if found.text is None:
            return Content("", fact("snapshot_without_listing", snapshot=taken.snapshot_id), taken)
        return Content(found.text, _describe(taken), taken)

    async def get_operation(self, caller: Caller, text: str) -> StoredDiskOperation:
        try:
            operation_id = OperationId(str(uuid.UUID(text)))
        except ValueError:
            raise NotFound("operation_not_found", text=text[:60]) from None
        return await self.disks.get_operation(operation_id, None if caller.is_admin else caller.user_id)

    async def _change(
        self,
        caller: Caller,
        name: str,
        decide: Callable[[Disk], Disk],
        operation: DiskOperation,
        entry: AuditEntry,
    ) -> tuple[Disk, DiskOperation]:
        """Read, decide, write if nobody moved; again if somebody did."""
        for _ in range(_TRIES):
            before = await self._get_present(caller, name)
            check_free(before)
            event = DiskEvent(
                _EVENTS[operation.kind],
                fact("disk_change_requested", username=caller.username),
                operation.requested_at,
            )
            record = RecordDisk(before, decide(before), operation.requested_at, event)
            try:
                return await self.disks.request(record, operation, (entry,)), operation
            except Stale:
                continue
        raise _moving(name)

    async def _get_present(self, caller: Caller, name: str) -> Disk:
        disk = await self.get(caller, name)
        if disk.is_deleted:
            raise Gone("disk_is_deleted", name=name)
        return disk

    async def _find(self, caller: Caller, name: str, *, is_deleted: bool) -> Disk | None:
        return (
            await self.disks.find(caller.user_id, name, is_deleted=is_deleted) if name.isprintable() else None
        )

    async def _wait_for(self, operation_id: OperationId) -> bool:
        """A rename is answered with what it did, so it is waited for: moments, as a rule."""
        for _ in range(round(self.rename_patience.total_seconds() / _POLL_SECONDS)):
            operation = await self.disks.get_operation(operation_id, None)
            if operation.status is not OperationStatus.REQUESTED:
                return operation.status is OperationStatus.DONE
            await asyncio.sleep(_POLL_SECONDS)
        return False

    def _operation(self, kind: DiskOperationKind) -> DiskOperation:
        return DiskOperation(OperationId(str(uuid.uuid4())), kind, self.clock.now())


_EVENTS = {
    DiskOperationKind.DELETE: DiskEventKind.DELETED,
    DiskOperationKind.RENAME: DiskEventKind.RENAMED,
    DiskOperationKind.GROW: DiskEventKind.GROWN,
}


def new_disk_id() -> DiskId:
    return DiskId(str(uuid.uuid4()))


def not_found(name: str) -> NotFound:
    return NotFound("disk_not_found", name=name[:60])


def check_free(disk: Disk) -> None:
    """Refuse what cannot be done to a disk that somebody has, with what can be done about that."""
    holder = disk.named_by or disk.reservation_id
    if disk.named_by is not None:
        raise Conflict("disk_attached", name=disk.spec.name, reservation=disk.named_by, code="disk_in_use")
    if disk.state is not DiskState.AVAILABLE:
        raise Conflict(
            "disk_is_busy", name=disk.spec.name, state=disk.state, reservation=holder, code="disk_in_use"
        )


def _moving(name: str) -> Conflict:
    return Conflict("disk_is_changing", name=name, code="disk_in_use")


def _describe(taken: StoredSnapshot) -> Fact:
    return fact("disk_listing", at=taken.started_at, snapshot=taken.snapshot_id)


def _plan_clone(
    source: Disk, snapshots: tuple[StoredSnapshot, ...], new_name: str, clock: Clock
) -> tuple[Disk, RecordDisk | None, Fact]:
    """The copy, the source's own move if it needs a fresh snapshot, and what the owner is told."""
    now = clock.now()
    spec = replace(
        source.spec, name=new_name, created_at=now, source_disk_id=source.id, source_snapshot_id=None
    )
    copy = Disk(new_disk_id(), spec, DiskVolume(zone=source.volume.zone))
    newest = snapshots[0] if snapshots else None
    is_free = source.state is DiskState.AVAILABLE
    if is_free and source.volume.is_dirty and not source.problem:
        after = rules.begin_snapshot(rules.move(source, DiskState.SNAPSHOTTING))
        event = DiskEvent(DiskEventKind.SNAPSHOT, fact("disk_copy_begun", name=new_name), now)
        return copy, RecordDisk(source, after, now, event), fact("disk_copying", name=source.spec.name)
    if newest is not None:
        copied = replace(copy, spec=replace(spec, source_snapshot_id=newest.snapshot_id))
        return copied, None, fact("disk_copying_snapshot", name=source.spec.name, at=newest.started_at)
    if is_free and not source.problem:
        # Nobody has ever written to it: a copy of nothing.
        empty = replace(copy, spec=replace(spec, source_disk_id=None))
        return empty, None, fact("disk_copying_nothing", name=source.spec.name)
    raise Conflict("disk_in_use_without_snapshot", name=source.spec.name, code="disk_in_use")
