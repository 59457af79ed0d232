"""What every store of identities must do, on real PostgreSQL."""

from __future__ import annotations

import asyncio

import pytest

from gpudev.bootstrap.foundation import Stores
from gpudev.domain.errors import NotAllowed
from gpudev.domain.identity import Identity, read_arn

pytestmark = pytest.mark.anyio


def identity(name: str = "ada", role: str = "Developers", account: str = "123456789012") -> Identity:
    return read_arn(f"arn:aws:sts::{account}:assumed-role/{role}/{name}")


async def test_an_identity_is_always_the_same_user(stores: Stores) -> None:
    first, second = await stores.users.admit(identity()), await stores.users.admit(identity())
    assert first is not None
    assert first == second
    assert await stores.users.find_arn(first.user_id) == identity().arn


@pytest.mark.parametrize(
    "other",
    [identity("a@b"), identity("a-b", role="Admins"), identity("a-b", account="999999999999")],
    ids=["other-name", "other-role", "other-account"],
)
async def test_another_identity_is_never_joined(stores: Stores, other: Identity) -> None:
    await stores.users.admit(identity("a-b"))
    assert await stores.users.admit(other) is None


async def test_a_user_without_identity_keeps_the_name(stores: Stores) -> None:
    owner = await stores.users.upsert("ada")
    assert await stores.users.admit(identity("ada")) is None
    assert await stores.users.upsert("ada") == owner
    assert await stores.users.find_arn(owner.user_id) is None


async def test_an_identity_keeps_the_name_from_those_without(stores: Stores) -> None:
    await stores.users.admit(identity("ada"))
    with pytest.raises(NotAllowed) as caught:
        await stores.users.upsert("ada")
    assert caught.value.code == "username_taken"


async def test_a_race_for_a_name_has_one_winner(stores: Stores) -> None:
    rivals = [identity("a-b"), identity("a@b"), identity("a+b"), identity("a=b")]
    users = await asyncio.gather(*(stores.users.admit(one) for one in rivals))
    assert len([user for user in users if user is not None]) == 1


async def test_a_disabled_user_stays_disabled(stores: Stores) -> None:
    await stores.users.admit(identity())
    await stores.database.execute("UPDATE api_users SET is_active = false")
    user = await stores.users.admit(identity())
    assert user is not None
    assert not user.is_active
