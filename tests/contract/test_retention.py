"""What every store must delete when told to, and what it must keep, on real PostgreSQL."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest

from gpudev.app.controllers import chores
from gpudev.app.controllers.chores import KEEP_KEYS, KEEP_MESSAGES, Pruning
from gpudev.bootstrap.foundation import Stores
from gpudev.ports.identity import StoredChallenge
from gpudev.ports.users import NewKey, User
from tests.support.reservations import NOON, make_reservation, submit

pytestmark = pytest.mark.anyio

SECOND = timedelta(seconds=1)


class Noon:
    def now(self) -> datetime:
        return NOON


async def add_keys(stores: Stores, user: User, *ends: datetime) -> None:
    for number, end in enumerate(ends):
        key = NewKey(f"{user.username}-{number}".encode(), f"{number}", end)
        await stores.users.add_key(user.user_id, key)


async def prefixes(stores: Stores, user: User) -> list[str]:
    return [key.prefix for key in await stores.users.list_keys(user.user_id, b"", NOON)]


async def test_keys_are_kept_for_a_while_after_their_end(stores: Stores, user: User) -> None:
    await add_keys(stores, user, NOON - KEEP_KEYS - SECOND, NOON - KEEP_KEYS, NOON - SECOND, NOON + SECOND)
    await Pruning(stores.retention, Noon()).prune()
    assert await prefixes(stores, user) == ["3", "2", "1"]


async def test_the_last_key_of_a_user_stays(stores: Stores, user: User) -> None:
    long_ago = NOON - 2 * KEEP_KEYS
    await add_keys(stores, user, long_ago, long_ago, long_ago)
    await Pruning(stores.retention, Noon()).prune()
    assert await prefixes(stores, user) == ["2"]


async def test_proofs_go_as_soon_as_they_are_too_old(stores: Stores, user: User) -> None:
    for proof, end in ((b"old", NOON - SECOND), (b"new", NOON + SECOND)):
        await stores.users.use_proof(proof, NOON - timedelta(hours=1), end)
        challenge = StoredChallenge(proof, user.user_id, "ada", end)
        await stores.github.add_challenge(challenge, NOON - timedelta(hours=1))
    await Pruning(stores.retention, Noon()).prune()
    assert not await stores.users.use_proof(b"new", NOON - timedelta(hours=1), NOON)
    left = "SELECT (SELECT count(*) FROM used_proofs), (SELECT count(*) FROM github_challenges)"
    row = await stores.database.fetch_row(left)
    assert row is not None
    assert tuple(row) == (1, 1)


async def test_messages_are_kept_for_a_while_in_the_archive(stores: Stores, user: User) -> None:
    for _ in range(3):
        await submit(stores, make_reservation(user))
    first, second, _waiting = await stores.messages.of_reservations.read(3)
    await stores.messages.of_reservations.archive([first.message_id, second.message_id])
    for message, age in ((first, KEEP_MESSAGES + SECOND), (second, KEEP_MESSAGES)):
        await stores.database.execute(
            "UPDATE pgmq.a_gpu_reservations SET archived_at = $2 WHERE msg_id = $1",
            message.message_id,
            NOON - age,
        )
    await Pruning(stores.retention, Noon()).prune()
    kept = await stores.database.fetch_value("SELECT array_agg(msg_id) FROM pgmq.a_gpu_reservations")
    assert (kept, await stores.messages.of_reservations.count()) == ([second.message_id], 1)


async def test_many_are_deleted_in_batches_by_many_at_once(
    stores: Stores, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chores, "BATCH", 3)
    await add_keys(stores, user, *[NOON - 2 * KEEP_KEYS] * 20)
    assert await stores.retention.delete_keys(NOON - KEEP_KEYS, 3) == 3
    await asyncio.gather(*(Pruning(stores.retention, Noon()).prune() for _ in range(4)))
    await Pruning(stores.retention, Noon()).prune()
    assert await prefixes(stores, user) == ["19"]
