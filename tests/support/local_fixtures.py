"""This machine as a cluster, for the folders whose `conftest.py` takes these fixtures over."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gpudev.adapters.local.cluster import LocalCluster
from gpudev.adapters.local.sandbox.isolation import Isolation
from tests.support.local_cluster import Key, make_key, need, open_cluster


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
