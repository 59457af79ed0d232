"""The message queues of items that have turns, on PGMQ.

Anybody who can write to the database can send anything there, so what is read may not be a message of ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from gpudev.adapters.postgres.dead_letters import PostgresDeadLetters
from gpudev.adapters.postgres.pool import Database
from gpudev.adapters.postgres.queries import load_queries
from gpudev.ports.queue import Message, QueueName
from gpudev.ports.turns import Kind
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say

_SQL = load_queries("queue")
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Address:
    """Where the messages about a kind of item are, and which field of theirs has the key."""

    queue: QueueName
    field: str


ADDRESSES: Mapping[Kind, Address] = {
    Kind.RESERVATION: Address(QueueName.RESERVATIONS, "reservation_id"),
    Kind.DISK: Address(QueueName.DISKS, "disk_id"),
}


class PgmqQueue:
    """`hidden_for` must outlast a turn, or another reader sees the message while it is worked on."""

    def __init__(self, database: Database, kind: Kind, hidden_for: timedelta = timedelta(seconds=30)) -> None:
        self._database = database
        self._address = ADDRESSES[kind]
        self._hidden_for = int(hidden_for.total_seconds())
        self._letters = PostgresDeadLetters(database)

    async def read(self, limit: int) -> tuple[Message, ...]:
        queue, field = self._address.queue, self._address.field
        rows = await self._database.fetch(
            *_SQL.bind("read", queue=queue, hidden_for=self._hidden_for, field=field, limit=limit)
        )
        ours = tuple(Message(row["msg_id"], row["key"], row["read_ct"]) for row in rows if _is_id(row["key"]))
        others = {row["msg_id"] for row in rows}.difference(message.message_id for message in ours)
        await self.bury(sorted(others), say(fact("message_without_id", field=field)))
        return ours

    async def bury(self, message_ids: Sequence[int], error: str) -> None:
        for message_id in message_ids:
            await self._letters.bury(self._address.queue, message_id, error)

    async def archive(self, message_ids: Sequence[int]) -> None:
        await self._database.execute(*_SQL.bind("archive", queue=self._address.queue, ids=list(message_ids)))

    async def count(self) -> int:
        return int(await self._database.fetch_value(_SQL["count"]))


def _is_id(text: str | None) -> bool:
    return text is not None and _ID.fullmatch(text) is not None
