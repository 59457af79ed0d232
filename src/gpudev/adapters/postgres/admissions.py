"""Admission passes, one at a time for a GPU type, and what the queue has promised.

A pass is one transaction that calls nobody.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import datetime, timedelta

import asyncpg

from gpudev.adapters.postgres.nodes import read_drains, write_emptied, write_nodes
from gpudev.adapters.postgres.pool import Connection, Database
from gpudev.adapters.postgres.queries import load_queries
from gpudev.adapters.postgres.recording import write_record
from gpudev.adapters.postgres.rows import reservation_from
from gpudev.domain.capacity import Node, NodeRoom
from gpudev.domain.drain import Drain
from gpudev.domain.errors import Stale
from gpudev.domain.names import NodeName, ReservationId, UserId
from gpudev.domain.plans.turn import Record
from gpudev.domain.policy import FairShare
from gpudev.domain.queue import (
    ANY_LENGTH,
    BUCKETS,
    LENGTHS,
    MIN_SAMPLES,
    Accuracy,
    Habits,
    QueuePlace,
    Submission,
    WaitRatios,
)
from gpudev.domain.reservation import Reservation
from gpudev.ports.admissions import AdmissionTransaction, Outlook
from gpudev.texts.vocabulary import Status

_FORECASTS = load_queries("forecasts")
_SQL = load_queries("admissions")


async def read_habits(connection: Connection, gpu_type: str, since: datetime) -> Habits:
    statement = _FORECASTS.bind(
        "list_habits",
        gpu_type=gpu_type,
        bounds=[bound.total_seconds() for bound in BUCKETS],
        since=since,
        min_samples=MIN_SAMPLES,
        lengths=LENGTHS,
        any_length=ANY_LENGTH,
    )
    rows = await connection.fetch(*statement)
    return Habits(
        {(row["slots"], row["bucket"], row["length_class"]): WaitRatios(*row["ratios"]) for row in rows}
    )


async def read_use(
    connection: Connection, gpu_type: str, fair_share: FairShare, now: datetime
) -> Mapping[UserId, float]:
    half_life = fair_share.half_life.total_seconds()
    since = now - fair_share.remembers
    rows = await connection.fetch(
        *_FORECASTS.bind("list_use", gpu_type=gpu_type, now=now, half_life=half_life, since=since)
    )
    return {UserId(row["user_id"]): row["gpu_hours"] for row in rows}


async def read_disk_busy(connection: Connection, gpu_type: str) -> frozenset[ReservationId]:
    rows = await connection.fetch(*_SQL.bind("list_disk_busy", gpu_type=gpu_type))
    return frozenset(ReservationId(str(row["reservation_id"])) for row in rows)


async def write_rooms(connection: Connection, gpu_type: str, rooms: Sequence[NodeRoom]) -> None:
    known = [asdict(room) for room in rooms]
    await connection.execute(*_FORECASTS.bind("set_rooms", gpu_type=gpu_type, rooms=known))


class PostgresAdmissions:
    def __init__(self, database: Database) -> None:
        self._database = database

    @asynccontextmanager
    async def lock(self, gpu_type: str) -> AsyncIterator[AdmissionTransaction]:
        async with self._database.transaction() as connection:
            await connection.execute(*_SQL.bind("lock", gpu_type=gpu_type))
            yield _Transaction(connection, gpu_type)

    async def wake(self, gpu_type: str) -> None:
        await self._database.execute(*_SQL.bind("wake", gpu_type=gpu_type))

    async def list_waiting_types(self) -> tuple[str, ...]:
        rows = await self._database.fetch(_SQL["list_waiting_types"])
        return tuple(row["gpu_type"] for row in rows)

    async def read_outlook(self, gpu_type: str, since: datetime) -> Outlook:
        async with self._database.transaction() as connection:
            rows = await connection.fetch(*_SQL.bind("read", gpu_type=gpu_type))
            rooms = await connection.fetchval(*_FORECASTS.bind("read_rooms", gpu_type=gpu_type)) or []
            habits = await read_habits(connection, gpu_type, since)
            disk_busy = await read_disk_busy(connection, gpu_type)
        return Outlook(
            reservations=tuple(map(reservation_from, rows)),
            rooms=tuple(NodeRoom(**room) for room in rooms),
            habits=habits,
            disk_busy=disk_busy,
        )

    async def read_use(self, gpu_type: str, fair_share: FairShare, now: datetime) -> Mapping[UserId, float]:
        async with self._database.transaction() as connection:
            return await read_use(connection, gpu_type, fair_share, now)

    async def list_submissions(self, gpu_type: str, since: datetime) -> tuple[Submission, ...]:
        rows = await self._database.fetch(
            *_FORECASTS.bind("list_submissions", gpu_type=gpu_type, since=since)
        )
        return tuple(Submission(**dict(row)) for row in rows)

    async def measure_accuracy(self, since: datetime, step: timedelta) -> tuple[Accuracy, ...]:
        rows = await self._database.fetch(*_FORECASTS.bind("measure_accuracy", since=since, step=step))
        return tuple(Accuracy(**dict(row)) for row in rows)


class _Transaction:
    def __init__(self, connection: Connection, gpu_type: str) -> None:
        self._connection = connection
        self._gpu_type = gpu_type

    async def read(self) -> tuple[Reservation, ...]:
        rows = await self._connection.fetch(*_SQL.bind("read", gpu_type=self._gpu_type))
        return tuple(map(reservation_from, rows))

    async def read_habits(self, since: datetime) -> Habits:
        return await read_habits(self._connection, self._gpu_type, since)

    async def read_use(self, fair_share: FairShare, now: datetime) -> Mapping[UserId, float]:
        return await read_use(self._connection, self._gpu_type, fair_share, now)

    async def set_rooms(self, rooms: Sequence[NodeRoom]) -> None:
        await write_rooms(self._connection, self._gpu_type, rooms)

    async def list_drains(self) -> tuple[Drain, ...]:
        return await read_drains(self._connection)

    async def set_nodes(self, nodes: Sequence[Node]) -> None:
        await write_nodes(self._connection, self._gpu_type, nodes)

    async def set_emptied(self, nodes: Sequence[NodeName], now: datetime) -> tuple[NodeName, ...]:
        return await write_emptied(self._connection, nodes, now)

    async def list_port_slots(self) -> frozenset[str]:
        return frozenset(row["port_slot"] for row in await self._connection.fetch(_SQL["list_port_slots"]))

    async def list_disk_busy(self) -> frozenset[ReservationId]:
        return await read_disk_busy(self._connection, self._gpu_type)

    async def list_disk_zones(self) -> dict[ReservationId, str]:
        rows = await self._connection.fetch(*_SQL.bind("list_disk_zones", gpu_type=self._gpu_type))
        return {ReservationId(str(row["reservation_id"])): row["zone"] for row in rows}

    async def record(self, record: Record) -> bool:
        try:
            return await self._write(record)
        except asyncpg.UniqueViolationError as error:
            # A pass for another type was faster; this transaction is over, and the next one sees it.
            raise Stale("port_slot_taken", slot=record.after.location.port_slot) from error

    async def _write(self, record: Record) -> bool:
        if record.after.state.status is not Status.PREPARING or record.after.spec.disk_id is None:
            return await write_record(self._connection, record, record.before, None) is not None
        try:
            async with self._connection.transaction():
                await self._place_with_disk(record)
        except Stale:
            return False
        except asyncpg.UniqueViolationError as error:
            # Somebody has named its disk since this pass began: it waits, and the others go on.
            if error.constraint_name != "reservations_live_disk":
                raise
            return False
        return True

    async def _place_with_disk(self, record: Record) -> None:
        """The place and the disk, both or neither."""
        after = record.after
        take_disk = _SQL.bind("take_disk", disk_id=after.spec.disk_id, reservation_id=after.id)
        # The disk first, as a submit does: otherwise the two can wait for each other.
        is_taken = await self._connection.fetchval(*take_disk)
        if not is_taken or await write_record(self._connection, record, record.before, None) is None:
            raise Stale("reservation_or_disk_changed", id=after.id)

    async def set_queue_places(self, places: Sequence[QueuePlace], now: datetime) -> None:
        values = _SQL.bind(
            "set_queue_places",
            ids=[place.reservation_id for place in places],
            positions=[place.position for place in places],
            estimated_starts=[place.estimated_start_at for place in places],
            reasons=[place.reason for place in places],
            details=[place.detail for place in places],
            planned_nodes=[",".join(place.planned_nodes) for place in places],
            likely_from=[place.likely.earliest if place.likely else None for place in places],
            likely_at=[place.likely.middle if place.likely else None for place in places],
            likely_to=[place.likely.latest if place.likely else None for place in places],
            now=now,
        )
        await self._connection.execute(*values)
