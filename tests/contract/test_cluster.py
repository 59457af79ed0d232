"""This machine as a cluster, with and without sandboxes: real processes, real `ssh`.

It does what every cluster must do (`cluster_rules`), and what only processes of one machine can be asked.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from gpudev.adapters.local.cluster import LocalCluster
from gpudev.adapters.local.processes.identity import holding
from gpudev.adapters.local.records import Records
from gpudev.adapters.local.sandbox.isolation import Isolation
from gpudev.domain.errors import Conflict
from gpudev.domain.idle import Signal
from gpudev.domain.names import NodeName
from gpudev.domain.server import ObservedServer, ServerSpec
from gpudev.ports.cluster import Cluster, ServerChanged
from tests.contract.cluster_rules import ClusterRules, GangRules
from tests.support.local_cluster import (
    NODE,
    PATIENCE_SECONDS,
    Key,
    SshClient,
    count_processes,
    create_ready,
    free_slots,
    hear,
    kill_member,
    make_config,
    make_spec,
    open_cluster,
    other_owner,
    say,
    wait_ready,
    wait_until,
)
from tests.support.reservations import NOON

pytestmark = pytest.mark.anyio


class LocalBackend:
    node = NODE
    nodes = (NODE, NodeName("t4-1"))
    at_once = 4

    def __init__(self, state_dir: Path, isolation: Isolation) -> None:
        self._state_dir = state_dir
        self._isolation = isolation

    def make_spec(
        self,
        key: Key | None = None,
        *,
        gpus: int = 1,
        node: NodeName | None = None,
        nodes: tuple[NodeName, ...] = (),
    ) -> ServerSpec:
        return make_spec(key, gpus=gpus, node=node or NODE, nodes=nodes)

    def open(self) -> AbstractAsyncContextManager[Cluster]:
        return open_cluster(self._state_dir, self._isolation)

    async def end_main_process(
        self, server: ObservedServer, key: Key, directory: Path, rank: int = 0
    ) -> None:
        kill_member(self._state_dir, server.reservation_id, rank)


@pytest.fixture
def backend(state_dir: Path, isolation: Isolation) -> LocalBackend:
    return LocalBackend(state_dir, isolation)


class TestRules(ClusterRules):
    pass


class TestGangRules(GangRules):
    pass


async def test_the_nodes_are_those_of_the_fleet(cluster: LocalCluster) -> None:
    nodes = cluster.snapshot().nodes
    assert [(node.name, node.gpu_type, node.slots) for node in nodes] == [
        ("t4-0", "t4", 4),
        ("t4-1", "t4", 4),
    ]
    assert all(node.is_simulated and node.is_schedulable for node in nodes)


async def test_each_server_has_gpus_of_its_own(cluster: LocalCluster, key: Key, tmp_path: Path) -> None:
    servers = [await create_ready(cluster, make_spec(key, gpus=2)) for _ in range(2)]
    clients = [SshClient(server, key, tmp_path) for server in servers]
    seen = [await client.run("echo $CUDA_VISIBLE_DEVICES") for client in clients]
    assert [done.out.strip() for done in seen] == [
        "simulated-t4-0-0,simulated-t4-0-1",
        "simulated-t4-0-2,simulated-t4-0-3",
    ]


async def test_the_lowest_free_gpus_are_given(cluster: LocalCluster, state_dir: Path) -> None:
    first, second, third = make_spec(), make_spec(), make_spec()
    await cluster.create_server(first)
    await cluster.create_server(second)
    uid = cluster.snapshot().servers[first.reservation_id].uid
    await cluster.delete_server(first.reservation_id, uid)
    await cluster.create_server(third)
    record = Records(state_dir).files_of(third.reservation_id[:8]).find_record()
    assert record is not None
    assert [gpu.visible_name for gpu in record.gpus] == ["simulated-t4-0-0"]


async def test_deleting_leaves_no_process_and_keeps_the_home(
    cluster: LocalCluster, key: Key, tmp_path: Path, state_dir: Path
) -> None:
    spec = make_spec(key)
    server = await create_ready(cluster, spec)
    client = SshClient(server, key, tmp_path)
    await client.run(
        "echo kept > ~/file; mkdir -m 000 $HF_HOME/.. -p; setsid nohup sleep 1000 >&- 2>&- <&- &"
    )
    session = await client.start("echo started; sleep 1000; true")
    await hear(session, "started")
    assert count_processes(spec.reservation_id) > 0
    await cluster.delete_server(spec.reservation_id, server.uid)
    assert count_processes(spec.reservation_id) == 0
    async with asyncio.timeout(PATIENCE_SECONDS):
        await session.wait()
    assert await cluster.find_server(spec.reservation_id) is None
    assert free_slots(cluster)[NODE] == 4
    assert (Records(state_dir).home_of(spec.reservation_id[:8]) / "file").read_text() == "kept\n"


async def test_a_killed_server_comes_back_as_it_was(
    cluster: LocalCluster, key: Key, tmp_path: Path, state_dir: Path
) -> None:
    spec = make_spec(key)
    before = await create_ready(cluster, spec)
    client = SshClient(before, key, tmp_path)
    await client.run("echo kept > ~/file")
    process = Records(state_dir).files_of(spec.reservation_id[:8]).find_processes()
    assert process is not None
    changes = cluster.changes()
    os.kill(process.root.pid, signal.SIGKILL)
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await anext(changes) == ServerChanged(spec.reservation_id)
    after = await wait_ready(cluster, spec.reservation_id)
    assert after == before
    assert (await client.run("cat ~/file")).out == "kept\n"


async def test_the_use_of_a_server_is_measured(
    cluster: LocalCluster, key: Key, tmp_path: Path, state_dir: Path
) -> None:
    spec = make_spec(key)
    server = await create_ready(cluster, spec)
    first = await cluster.measure(spec.reservation_id, server.uid, NOON)
    assert first is not None
    assert first.signals == {Signal.SSH: 0, Signal.GPU_USE: 0, Signal.GPU_MEMORY: 0}
    assert first.absent == {Signal.JUPYTER}
    assert first.is_simulated
    declared = Records(state_dir).files_of(spec.reservation_id[:8]).directory / "usage.json"
    declared.write_text('{"gpu_use": 80, "gpu_memory": 40}')
    session = await SshClient(server, key, tmp_path).start("echo here; while :; do :; done")
    await hear(session, "here")
    second = await cluster.measure(spec.reservation_id, server.uid, NOON)
    assert second is not None
    assert (second.signals[Signal.GPU_USE], second.signals[Signal.GPU_MEMORY]) == (80, 40)
    assert second.signals[Signal.SSH] >= 1
    assert second.signals[Signal.CPU] >= 0
    session.kill()
    await session.wait()
    assert await cluster.measure(spec.reservation_id, "another", NOON) is None


async def test_twenty_at_once(state_dir: Path, isolation: Isolation, key: Key, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.toml"
    fleet.write_text('[[nodes]]\ntype = "t4"\ngpus = 20\n')
    async with open_cluster(state_dir, isolation, fleet=str(fleet)) as cluster:
        specs = [make_spec(key) for _ in range(20)]
        servers = await asyncio.gather(*(create_ready(cluster, spec) for spec in specs))
        assert len({server.address for server in servers}) == 20
        clients = [SshClient(server, key, tmp_path) for server in servers]
        done = await asyncio.gather(*(client.run("echo $GPU_DEV_RESERVATION_ID") for client in clients))
        assert [one.out.strip() for one in done] == [spec.reservation_id for spec in specs]


async def test_a_session_outlives_the_killed_owner_and_is_taken_over(
    state_dir: Path, isolation: Isolation, key: Key, tmp_path: Path
) -> None:
    async with other_owner(state_dir, isolation, key) as (owner, expected):
        files = Records(state_dir).files_of(expected.reservation_id[:8])
        process = files.find_processes()
        session = await SshClient(expected, key, tmp_path).start("cat")
        await say(session, "before")
        await hear(session, "before\n")
        owner.kill()
        await owner.wait()
        await say(session, "without an owner")
        await hear(session, "without an owner\n")
        async with open_cluster(state_dir, isolation) as cluster:
            assert await wait_ready(cluster, expected.reservation_id) == expected
            assert files.find_processes() == process
            await say(session, "with another")
            await hear(session, "with another\n")
            await cluster.delete_server(expected.reservation_id, expected.uid)
            async with asyncio.timeout(PATIENCE_SECONDS):
                await session.wait()


async def test_a_server_that_died_without_an_owner_is_started_by_the_next(
    state_dir: Path, isolation: Isolation, key: Key, tmp_path: Path
) -> None:
    spec = make_spec(key)
    files = Records(state_dir).files_of(spec.reservation_id[:8])
    async with LocalCluster(make_config(state_dir, isolation)) as cluster:
        before = await create_ready(cluster, spec)
        process = files.find_processes()
    assert process is not None
    with holding(process.root) as root:
        assert root is not None
        root.send_signal(signal.SIGKILL)
        assert root.wait_blocking(PATIENCE_SECONDS)
    async with open_cluster(state_dir, isolation) as cluster:
        assert await wait_ready(cluster, spec.reservation_id) == before
        assert files.find_processes() != process
        assert (await SshClient(before, key, tmp_path).run("pwd")).code == 0


async def test_a_deletion_that_was_interrupted_is_finished_by_the_next_owner(
    state_dir: Path, isolation: Isolation
) -> None:
    spec = make_spec()
    files = Records(state_dir).files_of(spec.reservation_id[:8])
    async with LocalCluster(make_config(state_dir, isolation)) as cluster:
        await create_ready(cluster, spec)
    record = files.find_record()
    assert record is not None
    files.write_record(replace(record, is_leaving=True))
    async with open_cluster(state_dir, isolation) as cluster:
        await wait_until(cluster, lambda seen: seen is None, spec.reservation_id)
        assert count_processes(spec.reservation_id) == 0
        assert free_slots(cluster)[NODE] == 4


async def test_a_state_directory_has_one_owner(
    cluster: LocalCluster, state_dir: Path, isolation: Isolation
) -> None:
    with pytest.raises(Conflict, match="already runs"):
        async with LocalCluster(make_config(state_dir, isolation)):
            pass
