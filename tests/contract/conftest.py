"""The PostgreSQL side of the ports, on a database of each test's own, and this machine as a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gpudev.adapters.local.cluster import LocalCluster
from gpudev.adapters.local.sandbox.isolation import Isolation
from gpudev.bootstrap.foundation import Stores
from gpudev.ports.users import User
from tests.support.local_cluster import Key, make_key, need, open_cluster
from tests.support.reservations import open_test_stores


@pytest.fixture
async def stores(database: str) -> AsyncIterator[Stores]:
    async with open_test_stores(database) as opened:
        yield opened


@pytest.fixture
async def user(stores: Stores) -> User:
    return await stores.users.upsert("ada")


@pytest.fixture(params=list(Isolation), ids=str)
def isolation(request: pytest.FixtureRequest) -> Isolation:
    return need(request.param)


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def key(tmp_path: Path) -> Key:
    return make_key(tmp_path)


@pytest.fixture
async def cluster(state_dir: Path, isolation: Isolation) -> AsyncIterator[LocalCluster]:
    async with open_cluster(state_dir, isolation) as opened:
        yield opened
