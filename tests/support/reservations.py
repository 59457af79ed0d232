"""Reservations, users and stores for tests that talk to a real database."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from gpudev.adapters.postgres.pool import Database
from gpudev.bootstrap.foundation import Stores
from gpudev.domain.catalogue import DEFAULT_CATALOGUE
from gpudev.domain.names import ReservationId
from gpudev.domain.reservation import Event, Reservation
from gpudev.ports.reservations import HomeWish
from gpudev.ports.users import User
from gpudev.texts.vocabulary import EventKind
from tests.support.parts import build, change

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl test"


@asynccontextmanager
async def open_test_stores(dsn: str) -> AsyncIterator[Stores]:
    database = Database(dsn, max_connections=10)
    await database.open()
    try:
        stores = Stores.on(database)
        await stores.nodes.sync_types(DEFAULT_CATALOGUE.types)
        yield stores
    finally:
        await database.close()


def make_reservation(user: User, **changes: Any) -> Reservation:
    reservation_id = ReservationId(str(uuid.uuid4()))
    reservation = build(
        id=reservation_id,
        user_id=user.user_id,
        username=user.username,
        name=f"run-{reservation_id[:8]}",
        gpu_type="t4",
        gpu_count=1,
        duration=timedelta(hours=1),
        created_at=NOON,
        detail="Asked for it.",
        ssh_public_keys=(PUBLIC_KEY,),
    )
    return change(reservation, **changes)


async def submit(stores: Stores, reservation: Reservation, home: HomeWish | None = None) -> Reservation:
    event = Event(EventKind.SUBMITTED, reservation.state.detail, reservation.spec.created_at)
    await stores.reservations.submit(reservation, event, home=home)
    return await stores.reservations.get(reservation.id)
