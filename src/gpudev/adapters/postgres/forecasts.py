"""What the queue has promised and how it turned out, and what the plan of a type follows from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta

from gpudev.adapters.postgres.pool import Connection, Database
from gpudev.adapters.postgres.queries import load_queries
from gpudev.adapters.postgres.rows import reservation_from
from gpudev.domain.capacity import NodeRoom
from gpudev.domain.names import ReservationId, UserId
from gpudev.domain.policy import FairShare
from gpudev.domain.queue import (
    ANY_LENGTH,
    BUCKETS,
    LENGTHS,
    MIN_SAMPLES,
    Accuracy,
    Habits,
    Submission,
    WaitRatios,
)
from gpudev.ports.admissions import Outlook

_SQL = load_queries("forecasts")
_ADMISSIONS = load_queries("admissions")


class PostgresForecasts:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def read_outlook(self, gpu_type: str, since: datetime) -> Outlook:
        async with self._database.transaction() as connection:
            rows = await connection.fetch(*_ADMISSIONS.bind("read", gpu_type=gpu_type))
            rooms = await connection.fetchval(*_SQL.bind("read_rooms", gpu_type=gpu_type)) or []
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
        rows = await self._database.fetch(*_SQL.bind("list_submissions", gpu_type=gpu_type, since=since))
        return tuple(Submission(**dict(row)) for row in rows)

    async def measure_accuracy(self, since: datetime, step: timedelta) -> tuple[Accuracy, ...]:
        rows = await self._database.fetch(*_SQL.bind("measure_accuracy", since=since, step=step))
        return tuple(Accuracy(**dict(row)) for row in rows)


async def read_habits(connection: Connection, gpu_type: str, since: datetime) -> Habits:
    statement = _SQL.bind(
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
        *_SQL.bind("list_use", gpu_type=gpu_type, now=now, half_life=half_life, since=since)
    )
    return {UserId(row["user_id"]): row["gpu_hours"] for row in rows}


async def read_disk_busy(connection: Connection, gpu_type: str) -> frozenset[ReservationId]:
    rows = await connection.fetch(*_ADMISSIONS.bind("list_disk_busy", gpu_type=gpu_type))
    return frozenset(ReservationId(str(row["reservation_id"])) for row in rows)


async def write_rooms(connection: Connection, gpu_type: str, rooms: Sequence[NodeRoom]) -> None:
    known = [asdict(room) for room in rooms]
    await connection.execute(*_SQL.bind("set_rooms", gpu_type=gpu_type, rooms=known))
