"""The GPU types on offer and the room there is of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from gpudev.adapters.postgres.pool import Database, Row
from gpudev.adapters.postgres.queries import load_queries
from gpudev.adapters.postgres.rows import caller_from
from gpudev.domain.capacity import Availability
from gpudev.domain.catalogue import GpuType
from gpudev.domain.scaling import TypeCapacity
from gpudev.ports.store import StoredAvailability
from gpudev.ports.users import ShownKey, User

_SQL = load_queries("gpu_types")


class PostgresGpuTypes:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def sync(self, offered: Sequence[GpuType]) -> None:
        names = [gpu_type.name for gpu_type in offered]
        async with self._database.transaction() as connection:
            await connection.execute(
                _SQL["offer"],
                names,
                [gpu_type.instance_type for gpu_type in offered],
                [gpu_type.gpus_per_node for gpu_type in offered],
                [gpu_type.vcpus for gpu_type in offered],
                [gpu_type.memory_gib for gpu_type in offered],
                [gpu_type.slots_per_node for gpu_type in offered],
            )
            await connection.execute(_SQL["retire_others"], names)

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
            _SQL["set_availability"],
            availability.gpu_type,
            availability.total,
            availability.available,
            availability.max_reservable,
            availability.full_nodes_available,
            availability.nodes,
            availability.is_simulated,
            availability.next_start_at,
            now,
            updated_by,
        )

    async def set_capacity(
        self, capacity: Mapping[str, TypeCapacity], updated_by: str, now: datetime
    ) -> None:
        names = sorted(capacity)
        await self._database.execute(
            _SQL["set_capacity"],
            names,
            [capacity[name].desired for name in names],
            [capacity[name].running for name in names],
            now,
            updated_by,
        )

    async def list_availability(self) -> tuple[StoredAvailability, ...]:
        return tuple(map(_stored_from, await self._database.fetch(_SQL["list_availability"])))

    async def list_availability_for_key(
        self, key: ShownKey
    ) -> tuple[User | None, tuple[StoredAvailability, ...]]:
        rows = await self._database.fetch(_SQL["list_availability_for_key"], key.key_hash, key.at)
        return caller_from(rows), tuple(_stored_from(row) for row in rows if row["gpu_type"] is not None)


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
