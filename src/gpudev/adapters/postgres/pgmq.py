"""The message queues of reservations and of disks, on PGMQ."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from gpudev.adapters.postgres.pool import Database
from gpudev.adapters.postgres.queries import load_queries
from gpudev.domain.disk import DiskId
from gpudev.domain.names import ReservationId
from gpudev.ports.disks import DiskMessage
from gpudev.ports.queue import Message

_SQL = load_queries("queue")
_DISK_SQL = load_queries("disk_queue")


class PgmqQueue:
    """`hidden_for` must outlast a turn, or another reader sees the message while it is worked on."""

    def __init__(self, database: Database, hidden_for: timedelta = timedelta(seconds=30)) -> None:
        self._database = database
        self._hidden_for = int(hidden_for.total_seconds())

    async def read(self, limit: int) -> tuple[Message, ...]:
        rows = await self._database.fetch(_SQL["read"], self._hidden_for, limit)
        return tuple(Message(row["msg_id"], ReservationId(row["reservation_id"])) for row in rows)

    async def archive(self, message_ids: Sequence[int]) -> None:
        await self._database.execute(_SQL["archive"], list(message_ids))

    async def count(self) -> int:
        return int(await self._database.fetch_value(_SQL["count"]))


class PgmqDiskQueue:
    def __init__(self, database: Database, hidden_for: timedelta = timedelta(seconds=60)) -> None:
        self._database = database
        self._hidden_for = int(hidden_for.total_seconds())

    async def read(self, limit: int) -> tuple[DiskMessage, ...]:
        rows = await self._database.fetch(_DISK_SQL["read"], self._hidden_for, limit)
        return tuple(DiskMessage(row["msg_id"], DiskId(row["disk_id"])) for row in rows)

    async def archive(self, message_ids: Sequence[int]) -> None:
        await self._database.execute(_DISK_SQL["archive"], list(message_ids))
