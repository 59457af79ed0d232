"""Disks, their operations and the leases that controllers work under."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any

import asyncpg

from gpudev.adapters.postgres.audit import audit_columns
from gpudev.adapters.postgres.disk_rows import (
    claim_from,
    content_from,
    disk_from,
    event_from,
    operation_from,
    snapshot_from,
)
from gpudev.adapters.postgres.pool import Connection, Database
from gpudev.adapters.postgres.queries import load_queries
from gpudev.adapters.postgres.turns import Burial, Leasing, bury
from gpudev.domain.audit import AuditEntry
from gpudev.domain.disk import Disk, DiskEvent, DiskId, DiskOperation, SnapshotId
from gpudev.domain.errors import Conflict, NotFound, Stale
from gpudev.domain.names import OperationId, UserId
from gpudev.domain.plans.disk_turn import RecordDisk
from gpudev.domain.volume import FileListing, ObservedSnapshot
from gpudev.ports.disks import DiskClaim, StoredContent, StoredDiskOperation, StoredSnapshot
from gpudev.ports.turns import Kind

_SQL = load_queries("disks")


class PostgresDisks:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._leasing = Leasing(Kind.DISK)

    async def find(self, user_id: UserId, name: str, *, is_deleted: bool = False) -> Disk | None:
        row = await self._database.fetch_row(
            *_SQL.bind("find", user_id=user_id, name=name, is_deleted=is_deleted)
        )
        return disk_from(row) if row else None

    async def get(self, disk_id: DiskId) -> Disk:
        row = await self._database.fetch_row(*_SQL.bind("get", id=disk_id))
        if row is None:
            raise NotFound("disk_row_not_found", id=disk_id)
        return disk_from(row)

    async def list_of(self, user_id: UserId, *, is_deleted: bool = False) -> tuple[Disk, ...]:
        rows = await self._database.fetch(*_SQL.bind("list_of", user_id=user_id, is_deleted=is_deleted))
        return tuple(map(disk_from, rows))

    async def create(self, disk: Disk, operation: DiskOperation, audit: Sequence[AuditEntry] = ()) -> None:
        async with self._database.transaction() as connection:
            await _insert(connection, disk)
            await _request(connection, disk.id, operation, audit)

    async def request(
        self, record: RecordDisk, operation: DiskOperation, audit: Sequence[AuditEntry] = ()
    ) -> Disk:
        async with self._database.transaction() as connection:
            after = await _write(connection, record, None)
            await _request(connection, after.id, operation, audit)
        return after

    async def clone(
        self,
        copy: Disk,
        source: RecordDisk | None,
        operation: DiskOperation,
        audit: Sequence[AuditEntry] = (),
    ) -> None:
        async with self._database.transaction() as connection:
            if source is not None:
                await _write(connection, source, None)
            await _insert(connection, copy)
            await _request(connection, copy.id, operation, audit)

    async def claim(self, disk_id: DiskId, lease: timedelta) -> DiskClaim | None:
        row = await self._database.fetch_row(
            *_SQL.bind("claim", **self._leasing.claim_values(disk_id, lease))
        )
        return claim_from(row, self._leasing.lease_from(disk_id, row)) if row else None

    async def record(self, claim: DiskClaim, record: RecordDisk) -> Disk:
        async with self._database.transaction() as connection:
            return await _write(connection, record, claim.lease.token)

    async def bury(
        self, claim: DiskClaim, record: RecordDisk, error: str = "", message_ids: Sequence[int] = ()
    ) -> None:
        async with self._database.transaction() as connection:
            await _write(connection, record, claim.lease.token)
            await bury(connection, claim.lease, Burial(error, message_ids))

    async def list_stuck(self) -> tuple[Disk, ...]:
        return tuple(map(disk_from, await self._database.fetch(_SQL["list_stuck"])))

    async def list_snapshots(self, disk_id: DiskId) -> tuple[StoredSnapshot, ...]:
        rows = await self._database.fetch(*_SQL.bind("list_snapshots", id=disk_id))
        return tuple(map(snapshot_from, rows))

    async def find_content(self, disk_id: DiskId) -> StoredContent | None:
        row = await self._database.fetch_row(*_SQL.bind("find_content", id=disk_id))
        return content_from(row) if row else None

    async def keep_listing(
        self, snapshot_id: SnapshotId, text: str | None, address: str | None, used_bytes: int
    ) -> None:
        listing = {"content": text, "content_s3": address, "used_bytes": used_bytes}
        await self._database.execute(*_SQL.bind("keep_listing", snapshot_id=snapshot_id, **listing))

    async def keep_home_listing(self, disk_id: DiskId, listing: FileListing) -> None:
        text = listing.text.replace("\0", "")
        await self._database.execute(
            *_SQL.bind("keep_home_listing", id=disk_id, listing=text, used_bytes=listing.used_bytes)
        )

    async def take_home_listing(self, disk_id: DiskId) -> FileListing | None:
        row = await self._database.fetch_row(*_SQL.bind("take_home_listing", id=disk_id))
        return FileListing(row["home_listing"], row["home_used_bytes"]) if row else None

    async def list_events(self, disk_id: DiskId) -> tuple[DiskEvent, ...]:
        return tuple(map(event_from, await self._database.fetch(*_SQL.bind("list_events", id=disk_id))))

    async def get_operation(self, operation_id: OperationId, user_id: UserId | None) -> StoredDiskOperation:
        row = await self._database.fetch_row(*_SQL.bind("get_operation", id=operation_id, user_id=user_id))
        if row is None:
            raise NotFound("operation_row_not_found", id=operation_id)
        return operation_from(row)


async def _insert(connection: Connection, disk: Disk) -> None:
    try:
        await connection.execute(
            *_SQL.bind(
                "create",
                id=disk.id,
                state=disk.state,
                zone=disk.volume.zone,
                user_id=disk.spec.user_id,
                name=disk.spec.name,
                size_gb=disk.spec.size_gb,
                created_at=disk.spec.created_at,
                source_disk_id=disk.spec.source_disk_id,
                source_snapshot_id=disk.spec.source_snapshot_id,
            )
        )
    except asyncpg.UniqueViolationError as error:
        raise _taken(disk.spec.name) from error


async def _write(connection: Connection, record: RecordDisk, lease_token: str | None) -> Disk:
    """State and event, what else has changed, and the snapshots; the disk as it is then."""
    try:
        version = await connection.fetchval(*_write_state(record, lease_token))
        if version is None:
            raise Stale("disk_changed", name=record.before.spec.name)
        for statement in _list_others(record):
            await connection.execute(*statement)
    except asyncpg.UniqueViolationError as error:
        raise _taken(record.after.spec.name) from error
    if record.snapshots is not None:
        await keep_snapshots(connection, record.after.id, record.snapshots, record.at)
    return replace(record.after, version=version)


def _write_state(record: RecordDisk, lease_token: str | None) -> tuple[Any, ...]:
    after, event = record.after, record.event
    return _SQL.bind(
        "write_state",
        id=after.id,
        version=record.before.version,
        lease_token=lease_token,
        state=after.state,
        name=after.spec.name,
        reservation_id=after.reservation_id,
        problem=after.problem,
        last_used=after.last_used,
        released_at=after.released_at,
        deleted_at=after.deleted_at,
        delete_date=after.delete_date,
        at=record.at,
        event_kind=event.kind if event else None,
        event_fact=event.fact if event else None,
    )


def _list_others(record: RecordDisk) -> Iterator[tuple[Any, ...]]:
    after = record.after
    yield from list_parts(record.before, after)
    if record.outcomes:
        yield _SQL.bind(
            "settle",
            id=after.id,
            ids=[outcome.operation_id for outcome in record.outcomes],
            statuses=[outcome.status for outcome in record.outcomes],
            errors=[outcome.error for outcome in record.outcomes],
            at=record.at,
        )
    if record.is_ready and after.reservation_id is not None:
        yield _SQL.bind("wake_reservation", reservation_id=after.reservation_id)
    if record.frees:
        yield _SQL.bind("wake_admission", id=after.id)


def list_parts(before: Disk, after: Disk) -> Iterator[tuple[Any, ...]]:
    """A statement for each part that has changed."""
    if after.spec != before.spec:
        spec = after.spec
        yield _SQL.bind(
            "write_spec",
            id=after.id,
            size_gb=spec.size_gb,
            source_disk_id=spec.source_disk_id,
            source_snapshot_id=spec.source_snapshot_id,
        )
    if after.volume != before.volume:
        yield _SQL.bind("write_volume", id=after.id, **asdict(after.volume))
    if after.snapshots != before.snapshots:
        yield _SQL.bind("write_snapshots", id=after.id, **asdict(after.snapshots))


async def keep_snapshots(
    connection: Connection, disk_id: DiskId, snapshots: Sequence[ObservedSnapshot], now: datetime
) -> None:
    """All there are; the newest comes first, and copies that wait for one get it."""
    ids = [each.snapshot_id for each in snapshots]
    await connection.execute(
        *_SQL.bind(
            "keep_snapshots",
            id=disk_id,
            snapshot_ids=ids,
            volume_ids=[each.volume_id for each in snapshots],
            times=[each.started_at for each in snapshots],
            sizes=[each.size_gb for each in snapshots],
        )
    )
    await connection.execute(*_SQL.bind("forget_snapshots", id=disk_id, snapshot_ids=ids, now=now))
    if ids:
        await connection.execute(*_SQL.bind("give_to_copies", id=disk_id, snapshot_id=ids[0]))


async def _request(
    connection: Connection, disk_id: DiskId, operation: DiskOperation, audit: Sequence[AuditEntry]
) -> None:
    await connection.execute(
        *_SQL.bind(
            "request",
            operation_id=operation.operation_id,
            id=disk_id,
            kind=operation.kind,
            size_gb=operation.size_gb,
            requested_at=operation.requested_at,
            **audit_columns(audit),
        )
    )


def _taken(name: str) -> Conflict:
    return Conflict("disk_name_taken", code="disk_exists", name=name)
