"""Reservations with their events and outputs, and the leases that controllers work under.

What is over and changes no more is read from a streaming replica while there is one that answers.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import asyncpg
import structlog

from gpudev.adapters.postgres.audit import audit_columns, write_audit
from gpudev.adapters.postgres.pool import Connection, Database, Row
from gpudev.adapters.postgres.queries import load_queries
from gpudev.adapters.postgres.recording import write_memory, write_record
from gpudev.adapters.postgres.rows import (
    caller_from,
    columns_of,
    event_from,
    reservation_from,
    reservations_on,
)
from gpudev.adapters.postgres.turns import Burial, Leasing, bury
from gpudev.domain.audit import AuditEntry
from gpudev.domain.disk import DiskId
from gpudev.domain.drain import Drain
from gpudev.domain.errors import Conflict, NotFound, Stale, StoreUnavailable
from gpudev.domain.names import OperationId, ReservationId, UserId, find_id_range
from gpudev.domain.operations import Operation, Terms
from gpudev.domain.plans.turn import Record
from gpudev.domain.quota import LONG, NO_LIMIT, Quota, Use, asked_of, check_quota
from gpudev.domain.reservation import Event, Reservation, Spec
from gpudev.ports.reservations import (
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
from gpudev.texts.vocabulary import DiskState, OperationKind, Status

_SQL = load_queries("reservations")
_ID_BYTES = 16
"""What a mark begins with; see the view `reservation_marks`."""
_OUTPUTS = load_queries("job_outputs")
_PAUSE_SECONDS = 10.0
"""How long a replica that did not answer is left alone: nobody shall wait for it with every request."""
_log = structlog.get_logger(__name__)


class PostgresReservations:
    def __init__(self, database: Database, replica: Database | None = None) -> None:
        self._database = database
        self._leasing = Leasing(Kind.RESERVATION)
        self.history = PostgresHistory(self, PostgresReservations(replica)) if replica else None
        """Only where there is a replica."""

    async def submit(
        self,
        reservation: Reservation,
        event: Event,
        audit: Sequence[AuditEntry] = (),
        home: HomeWish | None = None,
        quota: Quota = NO_LIMIT,
    ) -> Reservation:
        submit = _submit(reservation, event, home, audit)
        try:
            if quota == NO_LIMIT:
                row = await self._database.fetch_row(*submit)
            else:
                async with self._database.transaction() as connection:
                    await _check_quota(connection, reservation, quota)
                    row = await connection.fetchrow(*submit)
        except asyncpg.UniqueViolationError as error:
            raise _conflict(reservation, error) from error
        except asyncpg.DatatypeMismatchError as error:
            raise await self._database.forget_row_types(error) from error
        return _with_home(reservation, row) if home and row else reservation

    async def find_submitter(self, key: ShownKey, disk_name: str) -> tuple[User | None, bool]:
        rows = await self._database.fetch(
            *_SQL.bind("find_submitter", key_hash=key.key_hash, now=key.at, disk_name=disk_name)
        )
        return caller_from(rows), bool(rows and rows[0]["is_disk_taken"])

    async def request_again(
        self, record: Record, audit: Sequence[AuditEntry] = (), quota: Quota = NO_LIMIT
    ) -> Reservation:
        async with self._database.transaction() as connection:
            if quota != NO_LIMIT:
                await _check_quota(connection, record.after, quota)
            await _ask_for_disk(connection, record.after.spec)
            version = await write_record(connection, record, record.before, None)
            if version is None:
                raise Stale("reservation_changed", id=record.after.id)
            await connection.execute(*write_audit(audit))
        return replace(record.after, version=version)

    async def read_use(
        self, user_id: UserId, since: Mapping[str, datetime], now: datetime
    ) -> Mapping[str, Use]:
        rows = await self._database.fetch(
            *_SQL.bind(
                "read_use",
                user_id=user_id,
                gpu_types=list(since),
                since=list(since.values()),
                now=now,
                id=None,
                long=LONG,
            )
        )
        return {row["gpu_type"]: _use_from(row) for row in rows}

    async def get(self, reservation_id: ReservationId) -> Reservation:
        row = await self._database.fetch_row(*_SQL.bind("get", id=reservation_id))
        if row is None:
            raise NotFound("reservation_row_not_found", id=reservation_id)
        return reservation_from(row)

    async def list_matching(self, user_id: UserId, text: str) -> tuple[Reservation, ...]:
        first, last = _id_range(text)
        rows = await self._database.fetch(
            *_SQL.bind("list_matching", user_id=user_id, text=text, first=first, last=last)
        )
        return tuple(map(reservation_from, rows))

    async def list_matching_of_all(self, text: str) -> tuple[Reservation, ...]:
        first, last = _id_range(text)
        rows = await self._database.fetch(
            *_SQL.bind("list_matching_of_all", text=text, first=first, last=last)
        )
        return tuple(map(reservation_from, rows))

    async def list_matching_for_key(
        self, key: ShownKey, text: str
    ) -> tuple[User | None, tuple[Reservation, ...]]:
        first, last = _id_range(text)
        shown = {"key_hash": key.key_hash, "now": key.at}
        rows = await self._database.fetch(
            *_SQL.bind("list_matching_for_key", text=text, first=first, last=last, **shown)
        )
        return caller_from(rows), reservations_on(rows)

    async def find_for_key(
        self, key: ShownKey, reservation_id: ReservationId, known: Mark | None
    ) -> tuple[User | None, Mark | None, Reservation | None]:
        rows = await self._database.fetch(
            *_SQL.bind("find_for_key", id=reservation_id, known=known, key_hash=key.key_hash, now=key.at)
        )
        found = reservations_on(rows)
        return caller_from(rows), rows[0]["mark"] if rows else None, found[0] if found else None

    async def list_page(self, query: ListQuery) -> Page:
        owner = {} if query.user_id is None else {"user_id": query.user_id}
        name = "list_page" if owner else "list_page_of_all"
        rows = await self._database.fetch(*_SQL.bind(name, **owner, **_page_values(query)))
        return Page(reservations_on(rows), rows[0]["total"])

    async def list_marks_for_key(self, key: ShownKey, query: ListQuery) -> tuple[User | None, MarkedPage]:
        values = {"key_hash": key.key_hash, "now": key.at, **_page_values(query)}
        if query.statuses:
            rows = await self._database.fetch(*_SQL.bind("list_marks_by_status_for_key", **values))
        else:
            del values["statuses"]
            rows = await self._database.fetch(*_SQL.bind("list_marks_for_key", **values))
        pages = [MarkedPage(tuple(row["marks"]), row["total"]) for row in rows]
        return caller_from(rows), pages[0] if pages else MarkedPage((), 0)

    async def find_marked(self, marks: Sequence[Mark]) -> Mapping[Mark, Marked]:
        asked = {uuid.UUID(bytes=mark[:_ID_BYTES]): mark for mark in marks}
        rows = await self._database.fetch(*_SQL.bind("list_marked", ids=list(asked)))
        pairs = zip(rows, reservations_on(rows), strict=True)
        return {asked[row["reservation_id"]]: Marked(row["mark"], found) for row, found in pairs}

    async def list_waiting(self) -> tuple[Reservation, ...]:
        return tuple(map(reservation_from, await self._database.fetch(_SQL["list_waiting"])))

    async def list_events(self, reservation_id: ReservationId, after: int) -> tuple[StoredEvent, ...]:
        rows = await self._database.fetch(*_SQL.bind("list_events", id=reservation_id, after=after))
        return tuple(map(event_from, rows))

    async def list_active(self) -> tuple[Reservation, ...]:
        return tuple(map(reservation_from, await self._database.fetch(_SQL["list_active"])))

    async def list_connectable(self, ids: Collection[ReservationId]) -> frozenset[ReservationId]:
        rows = await self._database.fetch(*_SQL.bind("list_connectable", ids=list(ids)))
        return frozenset(ReservationId(str(row["reservation_id"])) for row in rows)

    async def wake(self, reservation_id: ReservationId) -> None:
        await self._database.execute(*_SQL.bind("wake", id=reservation_id))

    async def count_live(self) -> Mapping[Status, StatusCount]:
        rows = await self._database.fetch(_SQL["count_live"])
        return {Status(row["status"]): StatusCount(row["reservations"], row["gpus"]) for row in rows}

    async def claim(self, reservation_id: ReservationId, lease: timedelta) -> Claim | None:
        row = await self._database.fetch_row(
            *_SQL.bind("claim", **self._leasing.claim_values(reservation_id, lease))
        )
        if row is None:
            return None
        drains = tuple(Drain(**drain) for drain in row["drains"])
        leased = self._leasing.lease_from(reservation_id, row)
        return Claim(leased, reservation_from(row), _operations_from(row), drains)

    async def record(self, claim: Claim, record: Record) -> Reservation:
        async with self._database.connection() as connection:
            version = await write_record(connection, record, claim.reservation, claim.lease.token)
        if version is None:
            raise Stale("reservation_changed", id=record.after.id)
        return replace(record.after, version=version)

    async def note(self, claim: Claim, after: Reservation) -> Reservation:
        async with self._database.transaction() as connection:
            noted = await connection.fetchval(*write_memory(after, after.version, claim.lease.token))
            if noted is None:
                raise Stale("reservation_changed", id=after.id)
            if after.state.detail != claim.reservation.state.detail:
                detail = after.state.detail
                await connection.execute(
                    *_SQL.bind("write_detail", id=after.id, version=after.version, detail=detail)
                )
            await connection.execute(*_SQL.bind("announce", id=after.id))
        return after

    async def bury(
        self, claim: Claim, record: Record, error: str = "", message_ids: Sequence[int] = ()
    ) -> None:
        async with self._database.transaction() as connection:
            if await write_record(connection, record, claim.reservation, claim.lease.token) is None:
                raise Stale("reservation_changed", id=record.after.id)
            await bury(connection, claim.lease, Burial(error, message_ids, record.event.at))

    async def list_unfinished(self, ids: Collection[ReservationId]) -> frozenset[ReservationId]:
        rows = await self._database.fetch(*_SQL.bind("list_unfinished", ids=list(ids)))
        return frozenset(ReservationId(str(row["reservation_id"])) for row in rows)

    async def keep_output(self, reservation_id: ReservationId, output: str) -> None:
        await self._database.execute(*_OUTPUTS.bind("keep", reservation_id=reservation_id, output=output))

    async def find_output(self, reservation_id: ReservationId) -> str | None:
        output: str | None = await self._database.fetch_value(
            *_OUTPUTS.bind("find", reservation_id=reservation_id)
        )
        return output


async def _check_quota(connection: Connection, asked: Reservation, quota: Quota) -> None:
    await connection.execute(*_SQL.bind("lock_quota", user_id=asked.spec.user_id))
    since = asked.waits_since - quota.period
    row = await connection.fetchrow(
        *_SQL.bind(
            "read_use",
            user_id=asked.spec.user_id,
            gpu_types=[asked.spec.gpu_type],
            since=[since],
            now=asked.waits_since,
            id=asked.id,
            long=LONG,
        )
    )
    if row is not None and not row["is_repeat"]:
        check_quota(asked_of(asked), quota, _use_from(row))


async def _ask_for_disk(connection: Connection, spec: Spec) -> None:
    """The disk before the reservation, as a submit does: otherwise the two can wait for each other."""
    if spec.disk_id is None:
        return
    if not await connection.fetchval(*_SQL.bind("ask_for_disk", disk_id=spec.disk_id)):
        raise Stale("disk_changed", name=spec.disk_name)


def _use_from(row: Row) -> Use:
    return Use(row["gpus"], row["waiting"], row["reserved_gpu_hours"], row["gpu_hours"], row["long_gpus"])


def _submit(
    reservation: Reservation, event: Event, home: HomeWish | None, audit: Sequence[AuditEntry]
) -> tuple[Any, ...]:
    return _SQL.bind(
        "submit",
        record=_record_row(reservation),
        settings={"reservation_id": reservation.id, **columns_of(reservation.settings)},
        home=_home_row(reservation.spec, home) if home else None,
        event_fact=event.fact,
        **audit_columns(audit),
    )


def _record_row(reservation: Reservation) -> dict[str, object]:
    spec = reservation.spec
    return {
        "reservation_id": reservation.id,
        "user_id": spec.user_id,
        "name": spec.name,
        "gpu_type": spec.gpu_type,
        "gpu_count": spec.gpu_count,
        "node_count": spec.node_count,
        "node_labels": spec.node_labels,
        "duration": spec.duration,
        "start_at": spec.start_at,
        "warning": spec.warnings,
        "created_at": spec.created_at,
        "status": reservation.state.status,
        "detail": reservation.state.detail,
    }


def _home_row(spec: Spec, home: HomeWish) -> dict[str, object]:
    return {
        "disk_id": home.disk_id,
        "user_id": spec.user_id,
        "name": home.disk_name,
        "size_gb": home.size_gb,
        "created_at": spec.created_at,
        "state": DiskState.AVAILABLE,
    }


def _with_home(reservation: Reservation, row: Row) -> Reservation:
    disk_id = DiskId(str(row["disk_id"])) if row["disk_id"] else None
    spec = replace(reservation.spec, disk_id=disk_id, disk_name=row["disk_name"])
    return replace(reservation, spec=spec)


def _id_range(text: str) -> tuple[ReservationId | None, ReservationId | None]:
    return find_id_range(text) or (None, None)


def _page_values(query: ListQuery) -> dict[str, object]:
    return {
        "statuses": query.statuses,
        "gpu_type": query.gpu_type,
        "limit": query.limit,
        "offset": query.offset,
    }


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


class PostgresHistory:
    """Reads from the replica, and from the primary where that cannot be."""

    def __init__(self, primary: PostgresReservations, replica: PostgresReservations) -> None:
        self._primary = primary
        self._replica = replica
        self._resumes_at = 0.0

    async def list_page(self, query: ListQuery) -> Page:
        if time.monotonic() < self._resumes_at:
            return await self._primary.list_page(query)
        try:
            return await self._replica.list_page(query)
        except (StoreUnavailable, asyncpg.SyntaxOrAccessError) as error:
            # The latter: it has not heard of our tables yet, or not of our right to read them.
            self._resumes_at = time.monotonic() + _PAUSE_SECONDS
            _log.warning("replica_unavailable", error=str(error), pause_seconds=_PAUSE_SECONDS)
        return await self._primary.list_page(query)
