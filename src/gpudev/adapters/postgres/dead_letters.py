"""Dead letters: in PGMQ, in a queue beside each queue."""

from __future__ import annotations

from collections.abc import Mapping

from gpudev.adapters.postgres.audit import write_audit
from gpudev.adapters.postgres.pool import Database, Row
from gpudev.adapters.postgres.queries import load_queries
from gpudev.domain.audit import AuditEntry
from gpudev.domain.names import make_printable
from gpudev.ports.queue import DeadLetter, LetterId, QueueName

_SQL = load_queries("dead_letters")
_LONGEST_ERROR = 500
_LONGEST_MESSAGE = 2000


class PostgresDeadLetters:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def bury(self, queue: QueueName, message_id: int, error: str) -> None:
        await self._database.execute(*_SQL.bind(f"bury_{queue}", id=message_id, error=show_error(error)))

    async def list_all(self, limit: int) -> tuple[DeadLetter, ...]:
        return tuple(map(_letter_from, await self._database.fetch(*_SQL.bind("list_all", limit=limit))))

    async def retry(self, letter_id: LetterId, audit: AuditEntry) -> bool:
        return await self._change("retry", letter_id, audit)

    async def drop(self, letter_id: LetterId, audit: AuditEntry) -> bool:
        return await self._change("drop", letter_id, audit)

    async def count(self) -> Mapping[QueueName, int]:
        rows = await self._database.fetch(_SQL["count"])
        counted = {QueueName(row["queue"]): row["letters"] for row in rows}
        return {queue: counted.get(queue, 0) for queue in QueueName}

    async def _change(self, query: str, letter_id: LetterId, audit: AuditEntry) -> bool:
        async with self._database.transaction() as connection:
            statement = _SQL.bind(query, queue=letter_id.queue, id=letter_id.number)
            is_done = bool(await connection.fetchval(*statement))
            if is_done:
                await connection.execute(*write_audit([audit]))
        return is_done


def show_error(error: str) -> str:
    """As it is kept."""
    return make_printable(error, _LONGEST_ERROR)


def _letter_from(row: Row) -> DeadLetter:
    return DeadLetter(
        LetterId(QueueName(row["queue"]), row["msg_id"]),
        make_printable(row["message"], _LONGEST_MESSAGE),
        row["error"],
        row["enqueued_at"],
    )
