"""What every cluster must do, whatever it is made of; each backend has a class that inherits these."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest

from gpudev.domain.errors import ClusterUnavailable, Defect
from gpudev.domain.names import NodeName, ReservationId
from gpudev.domain.server import ObservedServer, ServerPhase, ServerSpec
from gpudev.ports.cluster import CapacityChanged, Cluster, ServerChanged
from tests.support.local_cluster import (
    PATIENCE_SECONDS,
    Key,
    SshClient,
    create_ready,
    make_key,
    wait_ready,
    wait_until,
)


class Backend(Protocol):
    """One kind of cluster, as these tests need it."""

    node: NodeName
    """A node with GPUs that nobody else takes from meanwhile."""
    at_once: int
    """How many servers may be started together."""

    def make_spec(
        self, key: Key | None = None, *, gpus: int = 1, node: NodeName | None = None
    ) -> ServerSpec: ...

    def open(self) -> AbstractAsyncContextManager[Cluster]:
        """A cluster that leaves nothing behind."""
        ...

    async def end_main_process(self, server: ObservedServer, key: Key, directory: Path) -> None:
        """End what the server hangs from, as a user or a kernel may."""
        ...


def count_free(cluster: Cluster, node: NodeName) -> int:
    return next(shown.free_slots for shown in cluster.snapshot().nodes if shown.name == node)


async def wait_gone(cluster: Cluster, reservation_id: ReservationId) -> None:
    await wait_until(cluster, lambda seen: seen is None, reservation_id)


async def wait_unplaceable(cluster: Cluster, spec: ServerSpec) -> ObservedServer:
    server = await wait_until(
        cluster,
        lambda seen: seen is not None and seen.phase is ServerPhase.UNPLACEABLE,
        spec.reservation_id,
    )
    assert server is not None
    return server


class ClusterRules:
    async def test_a_created_server_is_in_the_snapshot_and_its_gpus_are_taken(
        self, backend: Backend, cluster: Cluster
    ) -> None:
        before = count_free(cluster, backend.node)
        spec = backend.make_spec(gpus=2)
        await cluster.create_server(spec)
        assert spec.reservation_id in cluster.snapshot().servers
        assert count_free(cluster, backend.node) == before - 2

    async def test_creating_again_adopts(self, backend: Backend, cluster: Cluster) -> None:
        spec = backend.make_spec()
        await asyncio.gather(cluster.create_server(spec), cluster.create_server(spec))
        first = await wait_ready(cluster, spec.reservation_id)
        await cluster.create_server(spec)
        assert cluster.snapshot().servers == {spec.reservation_id: first}

    async def test_a_name_that_belongs_to_another_is_a_defect(
        self, backend: Backend, cluster: Cluster
    ) -> None:
        spec = backend.make_spec()
        await cluster.create_server(spec)
        other = ReservationId(spec.reservation_id[:8] + str(uuid.uuid4())[8:])
        with pytest.raises(Defect, match=spec.reservation_id):
            await cluster.create_server(replace(spec, reservation_id=other))
        assert await cluster.find_server(other) is None

    async def test_a_node_without_room_gives_an_unplaceable_server(
        self, backend: Backend, cluster: Cluster
    ) -> None:
        await cluster.create_server(backend.make_spec(gpus=count_free(cluster, backend.node)))
        spec = backend.make_spec(gpus=1)
        await cluster.create_server(spec)
        server = await wait_unplaceable(cluster, spec)
        assert server.address is None
        assert server.detail
        assert count_free(cluster, backend.node) == 0
        await cluster.delete_server(spec.reservation_id, server.uid)
        await wait_gone(cluster, spec.reservation_id)
        assert await cluster.find_server(spec.reservation_id) is None

    async def test_a_node_that_is_not_there_gives_an_unplaceable_server(
        self, backend: Backend, cluster: Cluster
    ) -> None:
        spec = backend.make_spec(node=NodeName("t4-9"))
        await cluster.create_server(spec)
        await wait_unplaceable(cluster, spec)

    async def test_a_ready_server_is_reached_with_strict_host_keys(
        self, backend: Backend, cluster: Cluster, key: Key, tmp_path: Path
    ) -> None:
        server = await create_ready(cluster, backend.make_spec(key))
        done = await SshClient(server, key, tmp_path).run("echo out; echo err >&2; exit 7")
        assert (done.code, done.out, done.err) == (7, "out\n", "err\n")

    async def test_another_key_is_refused(
        self, backend: Backend, cluster: Cluster, key: Key, tmp_path: Path
    ) -> None:
        server = await create_ready(cluster, backend.make_spec(key))
        (tmp_path / "other").mkdir()
        stranger = SshClient(server, make_key(tmp_path / "other"), tmp_path)
        done = await stranger.run("true")
        assert done.code == 255
        assert "Permission denied" in done.err

    async def test_the_user_variables_are_in_every_session(
        self, backend: Backend, cluster: Cluster, key: Key, tmp_path: Path
    ) -> None:
        value = """two words, 'quotes' "both", $HOME, `id` and \\ """
        server = await create_ready(cluster, replace(backend.make_spec(key), env_vars={"MINE": value}))
        done = await SshClient(server, key, tmp_path).run("printenv MINE GPU_DEV_RESERVATION_ID")
        assert done.out == f"{value}\n{server.reservation_id}\n"

    async def test_deleting_leaves_nothing(self, backend: Backend, cluster: Cluster) -> None:
        before = count_free(cluster, backend.node)
        spec = backend.make_spec()
        server = await create_ready(cluster, spec)
        await cluster.delete_server(spec.reservation_id, server.uid)
        await wait_gone(cluster, spec.reservation_id)
        assert await cluster.find_server(spec.reservation_id) is None
        assert count_free(cluster, backend.node) == before

    async def test_deleting_what_is_gone_succeeds(self, backend: Backend, cluster: Cluster) -> None:
        spec = backend.make_spec()
        await cluster.create_server(spec)
        uid = cluster.snapshot().servers[spec.reservation_id].uid
        await asyncio.gather(*(cluster.delete_server(spec.reservation_id, uid) for _ in range(3)))
        await wait_gone(cluster, spec.reservation_id)
        await cluster.delete_server(spec.reservation_id, uid)

    async def test_another_incarnation_is_left_alone(self, backend: Backend, cluster: Cluster) -> None:
        spec = backend.make_spec()
        server = await create_ready(cluster, spec)
        await cluster.delete_server(spec.reservation_id, str(uuid.uuid4()))
        assert await cluster.find_server(spec.reservation_id) == server

    async def test_a_server_made_again_is_another_incarnation(
        self, backend: Backend, cluster: Cluster
    ) -> None:
        spec = backend.make_spec()
        first = await create_ready(cluster, spec)
        await cluster.delete_server(spec.reservation_id, first.uid)
        await wait_gone(cluster, spec.reservation_id)
        second = await create_ready(cluster, spec)
        assert second.uid != first.uid

    async def test_what_is_ended_comes_back_where_it_was(
        self, backend: Backend, cluster: Cluster, key: Key, tmp_path: Path
    ) -> None:
        before = await create_ready(cluster, backend.make_spec(key))
        client = SshClient(before, key, tmp_path)
        await client.run("echo kept > ~/file")
        changes = cluster.changes()
        await backend.end_main_process(before, key, tmp_path)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await anext(changes) != ServerChanged(before.reservation_id):
                pass
        after = await wait_ready(cluster, before.reservation_id)
        assert (after.uid, after.address, after.host_keys) == (before.uid, before.address, before.host_keys)
        assert (await client.run("cat ~/file")).out == "kept\n"

    async def test_changes_are_told_to_every_listener(self, backend: Backend, cluster: Cluster) -> None:
        listeners = [cluster.changes(), cluster.changes()]
        spec = backend.make_spec()
        await cluster.create_server(spec)
        expected = {ServerChanged(spec.reservation_id), CapacityChanged(spec.gpu_type)}
        async with asyncio.timeout(PATIENCE_SECONDS):
            for listener in listeners:
                missing = set(expected)
                while missing:
                    missing.discard(await anext(listener))

    async def test_many_at_once(self, backend: Backend, cluster: Cluster, key: Key, tmp_path: Path) -> None:
        specs = [backend.make_spec(key) for _ in range(backend.at_once)]
        servers = await asyncio.gather(*(create_ready(cluster, spec) for spec in specs))
        assert len({server.address for server in servers}) == len(specs)
        clients = [SshClient(server, key, tmp_path) for server in servers]
        done = await asyncio.gather(*(client.run("echo $GPU_DEV_RESERVATION_ID") for client in clients))
        assert [one.out.strip() for one in done] == [spec.reservation_id for spec in specs]

    async def test_a_closed_cluster_is_unavailable(self, backend: Backend) -> None:
        async with backend.open() as cluster:
            listener = cluster.changes()
        with pytest.raises(ClusterUnavailable):
            cluster.snapshot()
        assert [change async for change in listener] == []
