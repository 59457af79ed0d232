"""The message queue of reservations, on PGMQ."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from gpudev.adapters.postgres.pool import Database
from gpudev.adapters.postgres.queries import load_queries
from gpudev.domain.names import ReservationId
from gpudev.ports.queue import Message

_SQL = load_queries("queue")


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
