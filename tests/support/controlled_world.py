"""The controllers at work on a real database and a given cluster, with a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from gpudev.bootstrap.clusters import Backends
from gpudev.bootstrap.controller import make_controllers
from gpudev.bootstrap.disks import open_local_volumes
from gpudev.bootstrap.foundation import Stores
from gpudev.domain.catalogue import DEFAULT_CATALOGUE, Catalogue
from gpudev.domain.reservation import Reservation
from gpudev.ports.cluster import Cluster
from gpudev.ports.users import User
from gpudev.settings import Settings
from gpudev.settings.servers import LocalSettings
from gpudev.texts.vocabulary import EventKind, Status
from tests.support.reservations import NOON


@dataclass(slots=True)
class MovableClock:
    time: datetime = NOON

    def now(self) -> datetime:
        return self.time


@dataclass(frozen=True, slots=True)
class World:
    stores: Stores
    cluster: Cluster
    clock: MovableClock = field(default_factory=MovableClock)

    async def user(self) -> User:
        return await self.stores.users.upsert("ada")

    async def get(self, reservation: Reservation) -> Reservation:
        return await self.stores.reservations.get(reservation.id)

    async def until(
        self, reservation: Reservation, test: Callable[[Reservation], bool], seconds: float = 180
    ) -> Reservation:
        """Wait until the reservation is as wanted."""

        async def is_so() -> bool:
            return test(await self.get(reservation))

        await eventually(is_so, seconds)
        return await self.get(reservation)

    async def active(self, reservation: Reservation) -> Reservation:
        return await self.until(reservation, lambda now: now.state.status is Status.ACTIVE)

    async def move_to(self, time: datetime, reservation: Reservation) -> None:
        """The clock moves, and the reservation gets its turn: real timers know nothing of this clock."""
        self.clock.time = time
        await self.stores.reservations.wake(reservation.id)

    async def kinds(self, reservation: Reservation) -> list[EventKind]:
        return [stored.event.kind for stored in await self.stores.reservations.list_events(reservation.id, 0)]


async def eventually(condition: Callable[[], Awaitable[bool]], seconds: float = 180) -> None:
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - what it waits for is in the database
            await asyncio.sleep(0.01)


@asynccontextmanager
async def working_controllers(
    world: World, state_dir: Path, catalogue: Catalogue = DEFAULT_CATALOGUE
) -> AsyncIterator[None]:
    settings = Settings(local=LocalSettings().model_copy(update={"state_dir": state_dir, "fleet": "test"}))
    stores, cluster, clock = world.stores, world.cluster, world.clock
    async with open_local_volumes(state_dir, clock) as volumes:
        backends = Backends(cluster, volumes)
        controllers, _ = make_controllers(settings, stores, backends, catalogue, clock)
        running = asyncio.create_task(controllers.run())
        try:
            yield
        finally:
            controllers.stop()
            await running
