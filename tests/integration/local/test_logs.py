"""The log of a dev server on this machine."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gpudev.adapters.local.records import LocalLogs, Records
from gpudev.adapters.local.sandbox.isolation import Isolation
from gpudev.domain.errors import NotFound
from gpudev.ports.cluster import LogQuery
from tests.support.local_cluster import PATIENCE_SECONDS, create_ready, make_spec, open_cluster

pytestmark = pytest.mark.anyio


async def test_a_log_is_read_from_its_end_and_followed_until_the_server_is_gone(tmp_path: Path) -> None:
    logs = LocalLogs(tmp_path)
    async with open_cluster(tmp_path, Isolation.NONE) as cluster:
        server = await create_ready(cluster, make_spec())
        file = Records(tmp_path).files_of(server.reservation_id[:8]).log_path
        file.write_text("one\ntwo\nthree\n")
        assert [chunk async for chunk in logs.read(server.reservation_id, LogQuery(tail=2))] == [
            b"two\nthree\n"
        ]
        followed = logs.read(server.reservation_id, LogQuery(follow=True))
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await anext(followed) == b"one\ntwo\nthree\n"
            with file.open("a") as log:
                log.write("four\n")
            assert await anext(followed) == b"four\n"
            await cluster.delete_server(server.reservation_id, server.uid)
            async for _ in followed:
                pass


async def test_a_server_that_is_not_there_has_no_log(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        await anext(LocalLogs(tmp_path).read(make_spec().reservation_id, LogQuery()))
