"""What every store of users, keys and GPU types must do, on real PostgreSQL."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from gpudev.bootstrap.foundation import Stores
from gpudev.domain.capacity import Availability
from gpudev.domain.catalogue import DEFAULT_CATALOGUE
from gpudev.ports.users import NewKey
from tests.support.reservations import NOON, make_reservation, submit

pytestmark = pytest.mark.anyio


async def test_a_user_is_made_once(stores: Stores) -> None:
    first, second = await stores.users.upsert("ada"), await stores.users.upsert("ada")
    assert first == second


async def test_a_disabled_user_stays_disabled(stores: Stores) -> None:
    await stores.users.upsert("ada")
    await stores.database.execute("UPDATE api_users SET is_active = false")
    assert not (await stores.users.upsert("ada")).is_active


async def test_a_key_works_until_it_expires(stores: Stores) -> None:
    user = await stores.users.upsert("ada")
    await stores.users.add_key(user.user_id, NewKey(b"hash", "prefix", NOON + timedelta(hours=2)))
    assert await stores.users.find_by_key(b"hash", NOON) == user
    assert await stores.users.find_by_key(b"hash", NOON + timedelta(hours=2)) is None
    assert await stores.users.find_by_key(b"other", NOON) is None


async def test_a_proof_is_spent_once_whoever_asks(stores: Stores) -> None:
    later = NOON + timedelta(minutes=2)
    spent = await asyncio.gather(*(stores.users.use_proof(b"proof", NOON, later) for _ in range(8)))
    assert sorted(spent) == [False] * 7 + [True]


async def test_old_proofs_are_forgotten(stores: Stores) -> None:
    await stores.users.use_proof(b"old", NOON, NOON + timedelta(minutes=2))
    await stores.users.use_proof(b"new", NOON + timedelta(hours=1), NOON + timedelta(hours=2))
    assert await stores.database.fetch_value("SELECT count(*) FROM used_proofs") == 1


async def test_only_what_is_offered_is_listed(stores: Stores) -> None:
    await stores.nodes.sync_types(DEFAULT_CATALOGUE.only(["t4", "h100"]).types)
    rooms = await stores.nodes.list_availability()
    assert [room.availability.gpu_type for room in rooms] == ["h100", "t4"]


async def test_availability_is_kept_with_those_who_wait(stores: Stores) -> None:
    room = Availability("t4", 8, 3, 2, 0, 2, is_simulated=True, next_start_at=NOON)
    await stores.nodes.set_availability(room, "tests", NOON)
    user = await stores.users.upsert("ada")
    for count in (1, 2):
        await submit(stores, make_reservation(user, gpu_count=count))
    stored = {entry.availability.gpu_type: entry for entry in await stores.nodes.list_availability()}
    assert stored["t4"].availability == room
    assert (stored["t4"].queued_requests, stored["t4"].queued_gpus) == (2, 3)
    assert (stored["h100"].queued_requests, stored["h100"].queued_gpus) == (0, 0)
