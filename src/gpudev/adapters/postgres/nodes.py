"""The nodes that there are, and the drains of some of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from gpudev.adapters.postgres.audit import write_audit
from gpudev.adapters.postgres.pool import Connection, Database, Row
from gpudev.adapters.postgres.queries import load_queries
from gpudev.adapters.postgres.rows import reservation_from
from gpudev.domain.audit import AuditEntry
from gpudev.domain.capacity import Node
from gpudev.domain.drain import Drain
from gpudev.domain.names import NodeName
from gpudev.domain.reservation import Reservation
from gpudev.ports.nodes import StoredDrain, StoredNode

_SQL = load_queries("nodes")
_ADMISSIONS = load_queries("admissions")


class PostgresNodes:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_all(self) -> tuple[StoredNode, ...]:
        async with self._database.transaction() as connection:
            nodes = await connection.fetch(_SQL["list_all"])
            holders = tuple(map(reservation_from, await connection.fetch(_SQL["list_holders"])))
        return tuple(_node_from(row, holders) for row in nodes)

    async def list_drains(self) -> tuple[Drain, ...]:
        async with self._database.connection() as connection:
            return await read_drains(connection)

    async def drain(self, drain: Drain, now: datetime, audit: AuditEntry) -> None:
        async with self._database.transaction() as connection:
            # After this no pass for the type is under way: each has seen the drain, or has committed.
            await connection.execute(*_ADMISSIONS.bind("lock", gpu_type=drain.gpu_type))
            is_news = await connection.fetchval(
                *_SQL.bind(
                    "drain",
                    node=drain.node,
                    gpu_type=drain.gpu_type,
                    reason=drain.reason,
                    drained_by=audit.username,
                    now=now,
                )
            )
            await connection.execute(*write_audit([audit]))
            if is_news:
                await _wake(connection, drain.node, drain.gpu_type)

    async def undrain(self, node: NodeName, gpu_type: str, audit: AuditEntry) -> bool:
        async with self._database.transaction() as connection:
            await connection.execute(*_ADMISSIONS.bind("lock", gpu_type=gpu_type))
            was_drained = bool(await connection.fetchval(*_SQL.bind("undrain", node=node)))
            await connection.execute(*write_audit([audit]))
            if was_drained:
                await _wake(connection, node, gpu_type)
        return was_drained


async def read_drains(connection: Connection) -> tuple[Drain, ...]:
    rows = await connection.fetch(_SQL["list_drains"])
    return tuple(
        Drain(NodeName(row["node_name"]), row["gpu_type"], row["reason"], row["is_empty"]) for row in rows
    )


async def write_nodes(connection: Connection, gpu_type: str, nodes: Sequence[Node]) -> None:
    known = [
        {"name": node.name, "slots": node.slots, "is_schedulable": node.is_schedulable}
        for node in nodes
        if node.gpu_type == gpu_type
    ]
    await connection.execute(*_SQL.bind("set_nodes", gpu_type=gpu_type, nodes=known))


async def write_emptied(
    connection: Connection, nodes: Sequence[NodeName], now: datetime
) -> tuple[NodeName, ...]:
    rows = await connection.fetch(*_SQL.bind("set_emptied", nodes=nodes, now=now))
    return tuple(NodeName(row["node_name"]) for row in rows)


async def _wake(connection: Connection, node: NodeName, gpu_type: str) -> None:
    """Everybody who is there, and admission: what was kept for those who wait is to be planned anew."""
    await connection.execute(*_SQL.bind("wake_holders", node=node))
    await connection.execute(*_ADMISSIONS.bind("wake", gpu_type=gpu_type))


def _node_from(row: Row, holders: tuple[Reservation, ...]) -> StoredNode:
    name = NodeName(row["name"])
    drain = (
        StoredDrain(row["reason"], row["drained_by"], row["drained_at"], row["emptied_at"])
        if row["is_drained"]
        else None
    )
    return StoredNode(
        name=name,
        gpu_type=row["gpu_type"],
        slots=row["slots"] or 0,
        is_present=row["slots"] is not None,
        is_schedulable=bool(row["is_schedulable"]),
        drain=drain,
        holders=tuple(holder for holder in holders if name in holder.nodes),
    )
