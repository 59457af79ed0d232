"""Nodes and drains, and the GPU types on offer with the room there is of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from gpudev.adapters.postgres.audit import write_audit
from gpudev.adapters.postgres.pool import Connection, Database, Row
from gpudev.adapters.postgres.queries import load_queries
from gpudev.adapters.postgres.rows import caller_from, reservation_from
from gpudev.domain.audit import AuditEntry
from gpudev.domain.capacity import Availability, Node
from gpudev.domain.catalogue import GpuType
from gpudev.domain.drain import Drain
from gpudev.domain.names import NodeName
from gpudev.domain.reservation import Reservation
from gpudev.domain.scaling import TypeCapacity
from gpudev.ports.nodes import StoredAvailability, StoredDrain, StoredNode
from gpudev.ports.users import ShownKey, User

_SQL = load_queries("nodes")
_ADMISSIONS = load_queries("admissions")
_TYPES = load_queries("gpu_types")


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

    async def sync_types(self, offered: Sequence[GpuType]) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(*_offer(offered))
            names = [gpu_type.name for gpu_type in offered]
            await connection.execute(*_TYPES.bind("retire_others", gpu_types=names))

    async def list_types(self) -> tuple[GpuType, ...]:
        rows = await self._database.fetch(_TYPES["list_all"])
        return tuple(
            GpuType(
                name=row["gpu_type"],
                instance_type=row["instance_type"],
                gpus_per_node=row["max_gpus"],
                vcpus=row["cpus"],
                memory_gib=row["memory_gb"],
            )
            for row in rows
        )

    async def set_availability(self, availability: Availability, updated_by: str, now: datetime) -> None:
        await self._database.execute(
            *_TYPES.bind(
                "set_availability",
                gpu_type=availability.gpu_type,
                total=availability.total,
                available=availability.available,
                max_reservable=availability.max_reservable,
                full_nodes=availability.full_nodes_available,
                running=availability.nodes,
                is_simulated=availability.is_simulated,
                next_start_at=availability.next_start_at,
                now=now,
                updated_by=updated_by,
            )
        )

    async def set_capacity(
        self, capacity: Mapping[str, TypeCapacity], updated_by: str, now: datetime
    ) -> None:
        names = sorted(capacity)
        await self._database.execute(
            *_TYPES.bind(
                "set_capacity",
                gpu_types=names,
                desired=[capacity[name].desired for name in names],
                running=[capacity[name].running for name in names],
                now=now,
                updated_by=updated_by,
            )
        )

    async def list_availability(self) -> tuple[StoredAvailability, ...]:
        return tuple(map(_stored_from, await self._database.fetch(_TYPES["list_availability"])))

    async def list_availability_for_key(
        self, key: ShownKey
    ) -> tuple[User | None, tuple[StoredAvailability, ...]]:
        rows = await self._database.fetch(
            *_TYPES.bind("list_availability_for_key", key_hash=key.key_hash, now=key.at)
        )
        return caller_from(rows), tuple(_stored_from(row) for row in rows if row["gpu_type"] is not None)


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


def _offer(offered: Sequence[GpuType]) -> tuple[Any, ...]:
    return _TYPES.bind(
        "offer",
        gpu_types=[gpu_type.name for gpu_type in offered],
        instance_types=[gpu_type.instance_type for gpu_type in offered],
        max_gpus=[gpu_type.gpus_per_node for gpu_type in offered],
        cpus=[gpu_type.vcpus for gpu_type in offered],
        memory_gb=[gpu_type.memory_gib for gpu_type in offered],
        max_per_node=[gpu_type.slots_per_node for gpu_type in offered],
    )


def _stored_from(row: Row) -> StoredAvailability:
    availability = Availability(
        gpu_type=row["gpu_type"],
        total=row["total_cluster_gpus"],
        available=row["available_gpus"],
        max_reservable=row["max_reservable"],
        full_nodes_available=row["full_nodes_available"],
        nodes=row["running_instances"],
        is_simulated=row["is_simulated"],
        next_start_at=row["next_start_at"],
    )
    return StoredAvailability(
        availability=availability,
        max_per_node=row["max_per_node"],
        queued_requests=row["queued_requests"],
        queued_gpus=row["queued_gpus"],
        updated_at=row["last_availability_update"],
    )
