"""What every store of challenges and bindings must do, on real PostgreSQL."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from gpudev.bootstrap.foundation import Stores
from gpudev.domain.audit import AuditAction, AuditEntry
from gpudev.domain.github import Binding
from gpudev.ports.audit import AuditQuery
from gpudev.ports.identity import StoredChallenge
from gpudev.ports.users import User
from tests.support.reservations import NOON

pytestmark = pytest.mark.anyio

LATER = NOON + timedelta(minutes=5)
BOUND = AuditEntry("ada", AuditAction.GITHUB_BOUND, "ada-at-github")


async def give(stores: Stores, user: User, name: bytes = b"challenge") -> None:
    challenge = StoredChallenge(name, user.user_id, "ada-at-github", LATER)
    await stores.github.add_challenge(challenge, NOON)


async def test_a_challenge_is_spent_once_whoever_asks(stores: Stores, user: User) -> None:
    await give(stores, user)
    taking = (stores.github.take_challenge(b"challenge", user.user_id, NOON) for _ in range(8))
    taken = await asyncio.gather(*taking)
    assert sorted(filter(None, taken)) == ["ada-at-github"]


async def test_a_challenge_is_for_who_asked_for_it(stores: Stores, user: User) -> None:
    await give(stores, user)
    eve = await stores.users.upsert("eve")
    assert await stores.github.take_challenge(b"challenge", eve.user_id, NOON) is None
    assert await stores.github.take_challenge(b"other", user.user_id, NOON) is None
    assert await stores.github.take_challenge(b"challenge", user.user_id, NOON) is not None


async def test_a_challenge_ends(stores: Stores, user: User) -> None:
    await give(stores, user)
    assert await stores.github.take_challenge(b"challenge", user.user_id, LATER) is None


async def test_old_challenges_are_forgotten(stores: Stores, user: User) -> None:
    await give(stores, user)
    late = StoredChallenge(b"late", user.user_id, "ada-at-github", LATER + timedelta(hours=1))
    await stores.github.add_challenge(late, LATER + timedelta(seconds=1))
    assert await stores.database.fetch_value("SELECT count(*) FROM github_challenges") == 1


async def test_a_binding_is_kept_with_its_time_and_told(stores: Stores, user: User) -> None:
    assert await stores.github.find_binding(user.user_id) is None
    binding = Binding("ada-at-github", NOON)
    assert await stores.github.bind(user.user_id, binding, BOUND)
    assert await stores.github.find_binding(user.user_id) == binding
    (record,) = await stores.audit.list_page(AuditQuery(action=AuditAction.GITHUB_BOUND))
    assert record.entry == BOUND


async def test_a_later_binding_replaces_the_earlier(stores: Stores, user: User) -> None:
    for binding in (Binding("ada-at-github", NOON), Binding("countess", LATER)):
        assert await stores.github.bind(user.user_id, binding, BOUND)
    assert await stores.github.find_binding(user.user_id) == Binding("countess", LATER)


async def test_two_users_are_never_the_same_one(stores: Stores, user: User) -> None:
    eve = await stores.users.upsert("eve")
    await stores.github.bind(user.user_id, Binding("ada-at-github", NOON), BOUND)
    assert not await stores.github.bind(eve.user_id, Binding("ada-at-github", LATER), BOUND)
    assert await stores.github.find_binding(eve.user_id) is None
    assert len(await stores.audit.list_page(AuditQuery(action=AuditAction.GITHUB_BOUND))) == 1
