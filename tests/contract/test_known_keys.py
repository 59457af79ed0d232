"""The memory of published keys, on every adapter."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gpudev.bootstrap.foundation import Stores
from gpudev.ports.identity import StoredKeys
from tests.support.reservations import NOON, PUBLIC_KEY

pytestmark = pytest.mark.anyio

FIRST = StoredKeys((PUBLIC_KEY,), NOON)


async def test_nothing_is_known_of_a_user_who_was_never_asked_for(stores: Stores) -> None:
    assert await stores.github.find_keys("ada") is None


async def test_what_was_read_last_is_kept(stores: Stores) -> None:
    later = StoredKeys((), NOON + timedelta(minutes=1))
    await stores.github.keep_keys("ada", FIRST)
    assert await stores.github.find_keys("ada") == FIRST
    await stores.github.keep_keys("ada", later)
    assert await stores.github.find_keys("ada") == later
    assert await stores.github.find_keys("eve") is None


async def test_an_older_reading_does_not_replace_a_later_one(stores: Stores) -> None:
    await stores.github.keep_keys("ada", FIRST)
    await stores.github.keep_keys("ada", StoredKeys((), NOON - timedelta(minutes=1)))
    assert await stores.github.find_keys("ada") == FIRST
