"""The audit log and its seals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from gpudev.adapters.postgres.pool import Connection, Database, Row
from gpudev.adapters.postgres.queries import load_queries
from gpudev.domain.audit import LATE, AuditEntry, AuditRecord, Seal, SealedEntry, digest_of, make_seal
from gpudev.ports.audit import AuditQuery

_SQL = load_queries("audit")
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


def audit_columns(entries: Sequence[AuditEntry]) -> dict[str, list[str]]:
    """The parameters of a statement that includes `audit.entries`."""
    return {
        "audit_usernames": [entry.username for entry in entries],
        "audit_actions": [entry.action for entry in entries],
        "audit_targets": [entry.target for entry in entries],
        "audit_addresses": [entry.address for entry in entries],
        "audit_outcomes": [entry.outcome for entry in entries],
        "audit_details": [entry.detail for entry in entries],
    }


def write_audit(entries: Sequence[AuditEntry]) -> tuple[Any, ...]:
    """The statement that appends entries."""
    return _SQL.bind("write", **audit_columns(entries))


class PostgresAuditLog:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def write(self, *entries: AuditEntry) -> None:
        await self._database.execute(*write_audit(entries))

    async def list_page(self, query: AuditQuery) -> tuple[AuditRecord, ...]:
        rows = await self._database.fetch(
            *_SQL.bind(
                "list_page",
                username=query.username,
                action=query.action,
                since=query.since,
                until=query.until,
                before=query.before,
                limit=query.limit,
            )
        )
        return tuple(map(_record_from, rows))

    async def seal(self, limit: int) -> Seal | None:
        async with self._database.transaction() as connection:
            if not await connection.fetchval(_SQL["try_lock"]):
                return None
            previous = await connection.fetchrow(_SQL["find_last_seal"])
            return await _seal_after(connection, _seal_from(previous) if previous else None, limit)

    async def list_seals(self, after: int, limit: int) -> tuple[Seal, ...]:
        rows = await self._database.fetch(*_SQL.bind("list_seals", after=after, limit=limit))
        return tuple(map(_seal_from, rows))

    async def list_sealed(self, number: int) -> tuple[SealedEntry, ...]:
        rows = await self._database.fetch(*_SQL.bind("list_sealed", seal_number=number))
        return tuple(
            SealedEntry(row["sealed_id"], row["digest"], _record_from(row) if row["entry_id"] else None)
            for row in rows
        )

    async def list_unsealed(self) -> tuple[AuditRecord, ...]:
        return tuple(map(_record_from, await self._database.fetch(_SQL["list_unsealed"])))


async def _seal_after(connection: Connection, previous: Seal | None, limit: int) -> Seal | None:
    # The time is read first: what is committed after this may be missing from the rows, and is later.
    now = await connection.fetchval(_SQL["read_clock"])
    oldest = previous.known_until - LATE if previous else _BEGINNING
    rows = await connection.fetch(*_SQL.bind("list_sealable", since=oldest, limit=limit))
    records = [_record_from(row) for row in rows]
    if not records:
        return None
    seal = make_seal(previous, records, records[-1].at if len(records) == limit else now)
    await connection.execute(*_SQL.bind("add_seal", **asdict(seal)))
    digests = [digest_of(record) for record in records]
    ids = [record.entry_id for record in records]
    await connection.execute(
        *_SQL.bind("add_digests", seal_number=seal.number, entry_ids=ids, digests=digests)
    )
    return seal


def _record_from(row: Row) -> AuditRecord:
    entry = AuditEntry(
        username=row["username"],
        action=row["action"],
        target=row["target"],
        address=row["address"],
        outcome=row["outcome"],
        detail=row["detail"],
    )
    return AuditRecord(row["entry_id"], row["at"], entry)


def _seal_from(row: Row) -> Seal:
    return Seal(
        number=row["number"],
        first_id=row["first_id"],
        last_id=row["last_id"],
        entries=row["entries"],
        known_until=row["known_until"],
        previous_hash=row["previous_hash"],
        hash=row["hash"],
    )
