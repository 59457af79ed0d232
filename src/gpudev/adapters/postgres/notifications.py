"""Who wants to hear of what, and the queue of what is to be sent, on PGMQ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta

from gpudev.adapters.postgres.dead_letters import PostgresDeadLetters
from gpudev.adapters.postgres.pool import Database, Row
from gpudev.adapters.postgres.queries import load_queries
from gpudev.domain.names import UserId
from gpudev.domain.notification import Notification, Target
from gpudev.ports.notifications import Delivery
from gpudev.ports.queue import QueueName
from gpudev.texts.fact import fact, parse_fact
from gpudev.texts.sentences import say
from gpudev.texts.vocabulary import TargetKind, Topic
from gpudev.texts.zones import zone_or_utc

_SQL = load_queries("notifications")
_TEST_WORDS = say(fact("notification_test"))


class PostgresNotifications:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._letters = PostgresDeadLetters(database)

    async def find_target(self, user_id: UserId) -> Target | None:
        row = await self._database.fetch_row(*_SQL.bind("find_target", user_id=user_id))
        return _target_from(row) if row is not None else None

    async def set_target(self, target: Target) -> None:
        await self._database.execute(
            *_SQL.bind(
                "set_target",
                user_id=target.user_id,
                kind=target.kind,
                url=target.url,
                secret=target.secret,
                topics=sorted(target.topics),
            )
        )

    async def unset_target(self, user_id: UserId) -> None:
        await self._database.execute(*_SQL.bind("unset_target", user_id=user_id))

    async def send_test(self, user_id: UserId) -> None:
        await self._database.execute(*_SQL.bind("send_test", user_id=user_id))

    async def read(self, limit: int, hidden_for: timedelta) -> tuple[Delivery, ...]:
        seconds = math.ceil(hidden_for.total_seconds())
        rows = await self._database.fetch(*_SQL.bind("read", hidden_for=seconds, limit=limit))
        return tuple(map(_delivery_from, rows))

    async def retry_after(self, message_id: int, pause: timedelta) -> None:
        seconds = math.ceil(pause.total_seconds())
        await self._database.execute(*_SQL.bind("retry_after", id=message_id, seconds=seconds))

    async def bury(self, message_id: int, error: str) -> None:
        await self._letters.bury(QueueName.NOTIFICATIONS, message_id, error)

    async def archive(self, message_ids: Sequence[int]) -> None:
        await self._database.execute(*_SQL.bind("archive", ids=list(message_ids)))


def _delivery_from(row: Row) -> Delivery:
    target = _target_from(row) if row["user_id"] is not None else None
    return Delivery(
        row["msg_id"],
        _notification_from(row),
        target,
        row["read_ct"] - 1,
        is_test=row["is_test"],
        is_ours=row["is_ours"],
    )


def _notification_from(row: Row) -> Notification:
    is_test = row["is_test"]
    return Notification(
        delivery_id=f"test-{row['msg_id']}" if is_test else f"{row['reservation_id']}-{row['number']}",
        event="test" if is_test else row["event"],
        username=row["username"] or "",
        reservation_id=str(row["reservation_id"] or ""),
        name=row["name"] or "",
        gpu_type=row["gpu_type"] or "",
        gpu_count=row["gpu_count"] or 0,
        status=row["status"] or "",
        message=_TEST_WORDS if is_test else _message_of(row),
        at=row["at"] or row["enqueued_at"],
    )


def _message_of(row: Row) -> str:
    """With its times where the owner of the reservation was."""
    return say(parse_fact(row["fact"]), zone_or_utc(row["time_zone"])) if row["fact"] else ""


def _target_from(row: Row) -> Target:
    return Target(
        user_id=UserId(row["user_id"]),
        kind=TargetKind(row["kind"]),
        url=row["url"],
        topics=frozenset(map(Topic, row["topics"])),
        secret=row["secret"],
    )
