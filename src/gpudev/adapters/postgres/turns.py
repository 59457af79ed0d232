"""Turns and leases, in one table for all kinds of items."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from gpudev.adapters.postgres.dead_letters import show_error
from gpudev.adapters.postgres.pgmq import ADDRESSES
from gpudev.adapters.postgres.pool import Connection, Database, Row
from gpudev.adapters.postgres.queries import load_queries
from gpudev.ports.turns import Kind, Lease

_SQL = load_queries("turns")
_FOR_EVER = timedelta(days=365_000)


class PostgresTurns:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def end(self, lease: Lease, next_turn_at: datetime | None, *, defects: int = 0) -> None:
        await self._database.execute(*_end(lease, next_turn_at, defects))

    async def take_over(self, kind: Kind, now: datetime, within: timedelta | None = None) -> None:
        await self._database.execute(
            *_SQL.bind("take_over", kind=kind, now=now, within=_FOR_EVER if within is None else within)
        )

    async def list_due(self, kind: Kind, now: datetime, limit: int) -> tuple[str, ...]:
        rows = await self._database.fetch(*_SQL.bind("list_due", kind=kind, now=now, limit=limit))
        return tuple(str(row["key"]) for row in rows)

    async def find_next(self, kind: Kind, after: datetime) -> datetime | None:
        next_turn: datetime | None = await self._database.fetch_value(
            *_SQL.bind("find_next", kind=kind, after=after)
        )
        return next_turn

    async def is_known(self, kind: Kind, key: str) -> bool:
        return bool(await self._database.fetch_value(*_SQL.bind("is_known", kind=kind, id=key)))


class Leasing:
    """The values of claims of one kind, all by one token.

    One token a process: what this process leased before its last word was lost, it may lease again.
    """

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._token = str(uuid.uuid4())

    def claim_values(self, key: str, lease: timedelta) -> dict[str, object]:
        """For a statement that includes `turns.claim`."""
        return {"kind": self._kind, "id": key, "lease_token": self._token, "lease": lease}

    def lease_from(self, key: str, row: Row) -> Lease:
        return Lease(self._kind, key, self._token, row["asked"], row["defects"])


@dataclass(frozen=True, slots=True)
class Burial:
    """What is given up: why, by which messages, and when it is to be looked at again."""

    error: str
    message_ids: Sequence[int] = ()
    next_turn_at: datetime | None = None


async def bury(connection: Connection, lease: Lease, burial: Burial) -> None:
    """In the transaction that fails the item: a dead letter for its messages, and the end of the lease."""
    address = ADDRESSES[lease.kind]
    letter = _SQL.bind(
        "send_dead_letter",
        queue=address.queue,
        field=address.field,
        id=lease.key,
        error=show_error(burial.error),
        message_ids=list(burial.message_ids),
    )
    await connection.execute(*letter)
    await connection.execute(*_end(lease, burial.next_turn_at, 0))


def _end(lease: Lease, next_turn_at: datetime | None, defects: int) -> tuple[Any, ...]:
    return _SQL.bind(
        "end",
        kind=lease.kind,
        id=lease.key,
        lease_token=lease.token,
        settled=lease.asked,
        next_turn_at=next_turn_at,
        defects=defects,
    )
