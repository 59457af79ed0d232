"""Two PostgreSQL servers by the chart's own scripts, for the tests of replication, failover and backup."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.infra.postgres import Server, prepared_pair


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    """The primary and the replica, neither of them started."""
    with prepared_pair() as pair:
        yield pair
