"""The GPU types on offer and the room there is of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from gpudev.adapters.postgres.pool import Database, Row
from gpudev.adapters.postgres.queries import load_queries
from gpudev.adapters.postgres.rows import caller_from
from gpudev.domain.capacity import Availability
from gpudev.domain.catalogue import GpuType
from gpudev.domain.scaling import TypeCapacity
from gpudev.ports.nodes import StoredAvailability
from gpudev.ports.users import ShownKey, User

_SQL = load_queries("gpu_types")


class PostgresGpuTypes:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def sync(self, offered: Sequence[GpuType]) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(*_offer(offered))
            names = [gpu_type.name for gpu_type in offered]
            await connection.execute(*_SQL.bind("retire_others", gpu_types=names))

    async def list_all(self) -> tuple[GpuType, ...]:
        rows = await self._database.fetch(_SQL["list_all"])
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
            *_SQL.bind(
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
            *_SQL.bind(
                "set_capacity",
                gpu_types=names,
                desired=[capacity[name].desired for name in names],
                running=[capacity[name].running for name in names],
                now=now,
                updated_by=updated_by,
            )
        )

    async def list_availability(self) -> tuple[StoredAvailability, ...]:
        return tuple(map(_stored_from, await self._database.fetch(_SQL["list_availability"])))

    async def list_availability_for_key(
        self, key: ShownKey
    ) -> tuple[User | None, tuple[StoredAvailability, ...]]:
        rows = await self._database.fetch(
            *_SQL.bind("list_availability_for_key", key_hash=key.key_hash, now=key.at)
        )
        return caller_from(rows), tuple(_stored_from(row) for row in rows if row["gpu_type"] is not None)


def _offer(offered: Sequence[GpuType]) -> tuple[Any, ...]:
    return _SQL.bind(
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
