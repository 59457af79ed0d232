"""Two PostgreSQL servers by the chart's own scripts, for the tests of replication, failover and backup."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.infra.chart import render
from tests.support.infra.postgres import Server, choose_port, prepared_server


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    """The primary and the replica, neither of them started. Short paths: sockets have them."""
    pods = {pod.owner: pod for pod in render("generic").pods}
    port = choose_port()
    with tempfile.TemporaryDirectory(prefix="gpu-dev-pair-") as top, ExitStack() as stack:
        primary, replica = (
            stack.enter_context(
                prepared_server(
                    pods[f"StatefulSet/postgres-{kind}"], Path(top, kind), primary_port=port, port=own_port
                )
            )
            for kind, own_port in (("primary", port), ("replica", choose_port()))
        )
        yield primary, replica
