"""Reservations, their events and the leases that controllers work under."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import asyncpg

from gpudev.adapters.postgres.audit import audit_rows
from gpudev.adapters.postgres.pool import Connection, Database, Row
from gpudev.adapters.postgres.queries import load_queries
from gpudev.adapters.postgres.recording import marks_of, write_record
from gpudev.adapters.postgres.rows import (
    caller_from,
    event_from,
    reservation_from,
    reservations_on,
)
from gpudev.adapters.postgres.turns import Burial, Leasing, bury
from gpudev.domain.audit import AuditEntry
from gpudev.domain.disk import DiskId
from gpudev.domain.drain import Drain
from gpudev.domain.errors import Conflict, NotFound, Stale
from gpudev.domain.names import OperationId, ReservationId, UserId, find_id_range
from gpudev.domain.operations import Operation, Terms
from gpudev.domain.plans.actions import Record
from gpudev.domain.quota import LONG, NO_LIMIT, Quota, Use, asked_of, check_quota
from gpudev.domain.reservation import Event, Reservation
from gpudev.ports.store import (
    Claim,
    HomeWish,
    ListQuery,
    Mark,
    Marked,
    MarkedPage,
    Page,
    StatusCount,
    StoredEvent,
)
from gpudev.ports.turns import Kind
from gpudev.ports.users import ShownKey, User
from gpudev.texts.vocabulary import OperationKind, Status

_SQL = load_queries("reservations")
_ID_BYTES = 16
"""What a mark begins with; see the view `reservation_marks`."""


class PostgresReservations:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._leasing = Leasing(Kind.RESERVATION)

    async def submit(
        self,
        reservation: Reservation,
        event: Event,
        audit: Sequence[AuditEntry] = (),
        home: HomeWish | None = None,
        quota: Quota = NO_LIMIT,
    ) -> Reservation:
        values = _submitted_values(reservation, event, audit, home)
        try:
            if quota == NO_LIMIT:
                row = await self._database.fetch_row(_SQL["submit"], *values)
            else:
                async with self._database.transaction() as connection:
                    await _check_quota(connection, reservation, quota)
                    row = await connection.fetchrow(_SQL["submit"], *values)
        except asyncpg.UniqueViolationError as error:
            raise _conflict(reservation, error) from error
        return _with_home(reservation, row) if home and row else reservation

    async def read_use(
        self, user_id: UserId, since: Mapping[str, datetime], now: datetime
    ) -> Mapping[str, Use]:
        rows = await self._database.fetch(
            _SQL["read_use"], user_id, list(since), list(since.values()), now, None, LONG
        )
        return {row["gpu_type"]: _use_from(row) for row in rows}

    async def get(self, reservation_id: ReservationId) -> Reservation:
        row = await self._database.fetch_row(_SQL["get"], reservation_id)
        if row is None:
            raise NotFound("reservation_row_not_found", id=reservation_id)
        return reservation_from(row)

    async def list_matching(self, user_id: UserId, text: str) -> tuple[Reservation, ...]:
        rows = await self._database.fetch(_SQL["list_matching"], user_id, text, *_id_range(text))
        return tuple(map(reservation_from, rows))

    async def list_matching_of_all(self, text: str) -> tuple[Reservation, ...]:
        rows = await self._database.fetch(_SQL["list_matching_of_all"], text, *_id_range(text))
        return tuple(map(reservation_from, rows))

    async def list_matching_for_key(
        self, key: ShownKey, text: str
    ) -> tuple[User | None, tuple[Reservation, ...]]:
        first, last = _id_range(text)
        # A whole id, which is what clients ask for again and again, can mean nothing else.
        is_whole_id = first is not None and first == last
        name = "find_for_key" if is_whole_id else "list_matching_for_key"
        values = (first,) if is_whole_id else (text, first, last)
        rows = await self._database.fetch(_SQL[name], key.key_hash, key.at, *values)
        return caller_from(rows), reservations_on(rows)

    async def list_page(self, query: ListQuery) -> Page:
        name, owner = ("list_page_of_all", ()) if query.user_id is None else ("list_page", (query.user_id,))
        rows = await self._database.fetch(_SQL[name], *owner, *_page_values(query))
        return Page(reservations_on(rows), rows[0]["total"])

    async def list_page_for_key(self, key: ShownKey, query: ListQuery) -> tuple[User | None, Page]:
        values = (key.key_hash, key.at, *_page_values(query))
        rows = await self._database.fetch(_SQL["list_page_for_key"], *values)
        return caller_from(rows), Page(reservations_on(rows), rows[0]["total"] if rows else 0)

    async def list_marks_for_key(
        self, key: ShownKey, limit: int, offset: int
    ) -> tuple[User | None, MarkedPage]:
        rows = await self._database.fetch(_SQL["list_marks_for_key"], key.key_hash, key.at, limit, offset)
        pages = [MarkedPage(tuple(row["marks"]), row["total"]) for row in rows]
        return caller_from(rows), pages[0] if pages else MarkedPage((), 0)

    async def find_marked(self, marks: Sequence[Mark]) -> Mapping[Mark, Marked]:
        asked = {uuid.UUID(bytes=mark[:_ID_BYTES]): mark for mark in marks}
        rows = await self._database.fetch(_SQL["list_marked"], list(asked))
        pairs = zip(rows, reservations_on(rows), strict=True)
        return {asked[row["reservation_id"]]: Marked(row["mark"], found) for row, found in pairs}

    async def list_waiting(self) -> tuple[Reservation, ...]:
        return tuple(map(reservation_from, await self._database.fetch(_SQL["list_waiting"])))

    async def list_events(self, reservation_id: ReservationId, after: int) -> tuple[StoredEvent, ...]:
        rows = await self._database.fetch(_SQL["list_events"], reservation_id, after)
        return tuple(map(event_from, rows))

    async def list_active(self) -> tuple[Reservation, ...]:
        return tuple(map(reservation_from, await self._database.fetch(_SQL["list_active"])))

    async def list_connectable(self, ids: Collection[ReservationId]) -> frozenset[ReservationId]:
        rows = await self._database.fetch(_SQL["list_connectable"], list(ids))
        return frozenset(ReservationId(str(row["reservation_id"])) for row in rows)

    async def wake(self, reservation_id: ReservationId) -> None:
        await self._database.execute(_SQL["wake"], reservation_id)

    async def count_live(self) -> Mapping[Status, StatusCount]:
        rows = await self._database.fetch(_SQL["count_live"])
        return {Status(row["status"]): StatusCount(row["reservations"], row["gpus"]) for row in rows}

    async def claim(self, reservation_id: ReservationId, lease: timedelta) -> Claim | None:
        row = await self._database.fetch_row(
            _SQL["claim"], *self._leasing.claim_values(reservation_id, lease)
        )
        if row is None:
            return None
        drains = tuple(Drain(**drain) for drain in row["drains"])
        leased = self._leasing.lease_from(reservation_id, row)
        return Claim(leased, reservation_from(row), _operations_from(row), drains)

    async def record(self, claim: Claim, record: Record) -> Reservation:
        async with self._database.connection() as connection:
            version = await write_record(connection, record, claim.lease.token)
        if version is None:
            raise Stale("reservation_changed", id=record.after.id)
        return replace(record.after, version=version)

    async def note(self, claim: Claim, after: Reservation) -> Reservation:
        values = (after.id, after.version, claim.lease.token, after.state.detail, marks_of(after))
        if await self._database.fetch_row(_SQL["note"], *values) is None:
            raise Stale("reservation_changed", id=after.id)
        return after

    async def bury(
        self, claim: Claim, record: Record, error: str = "", message_ids: Sequence[int] = ()
    ) -> None:
        async with self._database.transaction() as connection:
            if await write_record(connection, record, claim.lease.token) is None:
                raise Stale("reservation_changed", id=record.after.id)
            await bury(connection, claim.lease, Burial(error, message_ids, record.event.at))

    async def list_unfinished(self, ids: Collection[ReservationId]) -> frozenset[ReservationId]:
        rows = await self._database.fetch(_SQL["list_unfinished"], list(ids))
        return frozenset(ReservationId(str(row["reservation_id"])) for row in rows)


async def _check_quota(connection: Connection, asked: Reservation, quota: Quota) -> None:
    await connection.execute(_SQL["lock_quota"], asked.spec.user_id)
    since = asked.spec.created_at - quota.period
    row = await connection.fetchrow(
        _SQL["read_use"],
        asked.spec.user_id,
        [asked.spec.gpu_type],
        [since],
        asked.spec.created_at,
        asked.id,
        LONG,
    )
    if row is not None and not row["is_repeat"]:
        check_quota(asked_of(asked), quota, _use_from(row))


def _use_from(row: Row) -> Use:
    return Use(row["gpus"], row["waiting"], row["reserved_gpu_hours"], row["gpu_hours"], row["long_gpus"])


def _submitted_values(
    reservation: Reservation, event: Event, audit: Sequence[AuditEntry], home: HomeWish | None
) -> tuple[object, ...]:
    return (
        reservation.id,
        reservation.spec.user_id,
        reservation.spec.name,
        reservation.spec.gpu_type,
        reservation.spec.gpu_count,
        reservation.spec.duration,
        dict(reservation.settings.env_vars),
        reservation.settings.ssh_public_keys,
        reservation.settings.client_version,
        reservation.spec.created_at,
        event.message,
        reservation.settings.github_user,
        reservation.spec.warning,
        audit_rows(audit),
        reservation.spec.node_count,
        reservation.settings.image,
        *_home_values(home),
        reservation.spec.start_at,
        dict(reservation.spec.node_labels),
    )


def _home_values(home: HomeWish | None) -> tuple[object, ...]:
    if home is None:
        return (None, None, None, None)
    return home.disk_id, home.disk_name, home.size_gb, home.if_taken or None


def _with_home(reservation: Reservation, row: Row) -> Reservation:
    disk_id = DiskId(str(row["disk_id"])) if row["disk_id"] else None
    spec = replace(reservation.spec, disk_id=disk_id, disk_name=row["disk_name"], warning=row["warning"])
    return replace(reservation, spec=spec)


def _id_range(text: str) -> tuple[ReservationId | None, ReservationId | None]:
    return find_id_range(text) or (None, None)


def _page_values(query: ListQuery) -> tuple[object, ...]:
    return query.statuses, query.gpu_type, query.limit, query.offset


def _operations_from(row: Row) -> tuple[Operation, ...]:
    names = ("ids", "kinds", "times", "admins", "lengths", "waits", "reasons")
    columns = zip(*(row[f"operation_{name}"] or () for name in names), strict=True)
    return tuple(
        Operation(OperationId(str(id_)), OperationKind(kind), at, by_admin, Terms(length, not_before, reason))
        for id_, kind, at, by_admin, length, not_before, reason in columns
    )


def _conflict(reservation: Reservation, error: asyncpg.UniqueViolationError) -> Conflict:
    if error.constraint_name == "reservations_live_name":
        return Conflict("reservation_name_taken", code="name_taken", name=reservation.spec.name)
    if error.constraint_name == "reservations_live_disk":
        return Conflict("home_in_use_by_another", code="disk_in_use")
    return Conflict("reservation_id_taken", code="id_taken", id=reservation.id)
