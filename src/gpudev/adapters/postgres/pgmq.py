"""The message queues of reservations and of disks, on PGMQ.

Anybody who can write to the database can send anything there, so what is read may not be a message of ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta

from gpudev.adapters.postgres.dead_letters import PostgresDeadLetters
from gpudev.adapters.postgres.pool import Database, Row
from gpudev.adapters.postgres.queries import load_queries
from gpudev.domain.disk import DiskId
from gpudev.domain.names import ReservationId
from gpudev.ports.dead_letters import QueueName
from gpudev.ports.disks import DiskMessage
from gpudev.ports.queue import Message

_SQL = load_queries("queue")
_DISK_SQL = load_queries("disk_queue")
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class PgmqQueue:
    """`hidden_for` must outlast a turn, or another reader sees the message while it is worked on."""

    def __init__(self, database: Database, hidden_for: timedelta = timedelta(seconds=30)) -> None:
        self._database = database
        self._hidden_for = int(hidden_for.total_seconds())
        self._letters = PostgresDeadLetters(database)

    async def read(self, limit: int) -> tuple[Message, ...]:
        rows = await self._database.fetch(_SQL["read"], self._hidden_for, limit)
        ours = [row for row in rows if _is_id(row["reservation_id"])]
        await self.bury(_list_others(rows, ours), "It has no reservation_id that is a UUID.")
        return tuple(
            Message(row["msg_id"], ReservationId(row["reservation_id"]), row["read_ct"]) for row in ours
        )

    async def bury(self, message_ids: Sequence[int], error: str) -> None:
        for message_id in message_ids:
            await self._letters.bury(QueueName.RESERVATIONS, message_id, error)

    async def archive(self, message_ids: Sequence[int]) -> None:
        await self._database.execute(_SQL["archive"], list(message_ids))

    async def count(self) -> int:
        return int(await self._database.fetch_value(_SQL["count"]))


class PgmqDiskQueue:
    def __init__(self, database: Database, hidden_for: timedelta = timedelta(seconds=60)) -> None:
        self._database = database
        self._hidden_for = int(hidden_for.total_seconds())
        self._letters = PostgresDeadLetters(database)

    async def read(self, limit: int) -> tuple[DiskMessage, ...]:
        rows = await self._database.fetch(_DISK_SQL["read"], self._hidden_for, limit)
        ours = [row for row in rows if _is_id(row["disk_id"])]
        await self.bury(_list_others(rows, ours), "It has no disk_id that is a UUID.")
        return tuple(DiskMessage(row["msg_id"], DiskId(row["disk_id"]), row["read_ct"]) for row in ours)

    async def bury(self, message_ids: Sequence[int], error: str) -> None:
        for message_id in message_ids:
            await self._letters.bury(QueueName.DISKS, message_id, error)

    async def archive(self, message_ids: Sequence[int]) -> None:
        await self._database.execute(_DISK_SQL["archive"], list(message_ids))


def _is_id(text: str | None) -> bool:
    return text is not None and _ID.fullmatch(text) is not None


def _list_others(rows: Sequence[Row], ours: Sequence[Row]) -> list[int]:
    known = {row["msg_id"] for row in ours}
    return [row["msg_id"] for row in rows if row["msg_id"] not in known]
