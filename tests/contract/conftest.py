"""The PostgreSQL side of the ports, on a database of each test's own, and this machine as a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from gpudev.bootstrap.foundation import Stores
from gpudev.ports.users import User
from tests.support.local_fixtures import cluster, isolation, key, state_dir
from tests.support.postgres import as_app
from tests.support.reservations import open_test_stores

__all__ = ["cluster", "isolation", "key", "state_dir", "stores", "user"]


@pytest.fixture
async def stores(database: str) -> AsyncIterator[Stores]:
    """As the role that owns nothing, so that every statement is shown to do without more rights."""
    async with open_test_stores(as_app(database)) as opened:
        yield opened


@pytest.fixture
async def user(stores: Stores) -> User:
    return await stores.users.upsert("ada")
