"""Reconciliation's side of the rows of disks."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, fields
from datetime import datetime, timedelta
from typing import assert_never

import asyncpg

from gpudev.adapters.postgres.disk_rows import disk_from
from gpudev.adapters.postgres.disks import keep_snapshots, list_parts
from gpudev.adapters.postgres.pool import Connection, Database, connect
from gpudev.adapters.postgres.queries import load_queries
from gpudev.domain.disk import DiskId
from gpudev.domain.errors import Conflict
from gpudev.domain.plans.reconciliation import Change, ImportDisk, LedgerRow, Statistics, SyncDisk
from gpudev.domain.volume import ObservedVolume
from gpudev.ports.disks import StoredReconciliation
from gpudev.texts.fact import fact, parse_fact

_SQL = load_queries("disk_ledger")
_KEPT_FOR = timedelta(days=30)


class PostgresDiskLedger:
    def __init__(self, database: Database) -> None:
        self._database = database

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[bool]:
        """By a connection outside the pool: no transaction stays open while the storage is asked."""
        connection = await connect(self._database.dsn)
        try:
            yield bool(await connection.fetchval(_SQL["try_lock"]))
        finally:
            await connection.close()

    async def list_rows(self) -> tuple[LedgerRow, ...]:
        rows = await self._database.fetch(_SQL["list_rows"])
        return tuple(
            LedgerRow(disk_from(row), row["has_pending_snapshot"], row["is_holder_clean"]) for row in rows
        )

    async def apply(self, change: Change, now: datetime) -> bool:
        try:
            async with self._database.transaction() as connection:
                match change:
                    case ImportDisk():
                        return await _import(connection, change, now)
                    case SyncDisk():
                        return await _sync(connection, change, now)
                    case other:
                        assert_never(other)
        except asyncpg.IntegrityConstraintViolationError as error:
            raise Conflict("ledger_constraint", code="disk_not_reconciled", words=str(error)) from error

    async def save(self, done: StoredReconciliation) -> None:
        await self._database.execute(
            *_SQL.bind(
                "save",
                at=done.at,
                reconciled_by=done.reconciled_by,
                remarks=list(done.remarks),
                **asdict(done.statistics),
            )
        )
        await self._database.execute(*_SQL.bind("forget_old", before=done.at - _KEPT_FOR))

    async def find_last(self) -> StoredReconciliation | None:
        row = await self._database.fetch_row(_SQL["find_last"])
        if row is None:
            return None
        statistics = Statistics(**{field.name: row[field.name] for field in fields(Statistics)})
        return StoredReconciliation(
            row["at"], row["reconciled_by"], statistics, tuple(map(parse_fact, row["remarks"]))
        )


async def _import(connection: Connection, change: ImportDisk, now: datetime) -> bool:
    volume, facts = change.volume, change.snapshots
    if volume.tags is None:
        return False
    disk_id = _id_for(volume)
    imported = await connection.fetchval(
        *_SQL.bind(
            "import",
            id=disk_id,
            username=volume.tags.username,
            name=volume.tags.disk_name,
            size_gb=volume.size_gb,
            created_at=volume.created_at,
            volume_id=volume.volume_id,
            zone=volume.zone,
            is_attached=bool(volume.attached_to),
            has_pending_snapshot=facts.is_pending if facts else False,
            snapshot_count=len(facts.completed) if facts else 0,
            last_snapshot_at=facts.completed[0].started_at if facts and facts.completed else None,
            at=now,
            event_fact=fact("disk_imported", volume=volume.volume_id),
        )
    )
    has_user = _SQL.bind("has_user", username=volume.tags.username)
    if imported is None and not await connection.fetchval(*has_user):
        raise Conflict(
            "volume_of_unknown_user",
            code="disk_of_unknown_user",
            volume=volume.volume_id,
            username=volume.tags.username,
        )
    if imported is not None and facts is not None:
        await keep_snapshots(connection, disk_id, facts.completed, now)
    return imported is not None


async def _sync(connection: Connection, change: SyncDisk, now: datetime) -> bool:
    after = change.after
    synced = await connection.fetchval(
        *_SQL.bind(
            "sync",
            id=after.id,
            version=change.before.version,
            state=after.state,
            reservation_id=after.reservation_id,
            has_pending_snapshot=change.has_pending_snapshot,
            at=now,
            event_fact=fact("disk_synced"),
            is_due=change.before.state is not after.state,
        )
    )
    if synced is None:
        return False
    for statement in list_parts(change.before, after):
        await connection.execute(*statement)
    if change.snapshots is not None:
        await keep_snapshots(connection, after.id, change.snapshots, now)
    return True


def _id_for(volume: ObservedVolume) -> DiskId:
    """The id that the volume had before its row was lost, if it says one."""
    tagged = volume.tags.disk_id if volume.tags else None
    try:
        return DiskId(str(uuid.UUID(tagged or "")))
    except ValueError:
        return DiskId(str(uuid.uuid4()))
