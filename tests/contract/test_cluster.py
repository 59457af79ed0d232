"""This machine as a cluster, with and without sandboxes: real processes, real `ssh`.

It does what every cluster must do (`cluster_rules`), and what only processes of one machine can be asked.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from gpudev.adapters.local.allotment import Given
from gpudev.adapters.local.cluster import LocalCluster
from gpudev.adapters.local.new_server import draw_up
from gpudev.adapters.local.processes.identity import holding
from gpudev.adapters.local.record import record_key
from gpudev.adapters.local.records import Records
from gpudev.adapters.local.sandbox.isolation import Isolation
from gpudev.adapters.local.ssh_port import bind_any_port
from gpudev.domain.errors import Conflict
from gpudev.domain.idle import Signal
from gpudev.domain.names import NodeName, ReservationId, member_name
from gpudev.domain.server import ObservedServer, ServerPhase, ServerSpec
from gpudev.ports.cluster import Cluster, ServerChanged
from tests.contract.cluster_rules import ClusterRules, GangRules, clients_of
from tests.support.local_cluster import (
    NODE,
    PATIENCE_SECONDS,
    Key,
    SshClient,
    count_processes,
    create_ready,
    end_session,
    hear,
    make_config,
    make_key,
    make_spec,
    need,
    open_cluster,
    other_owner,
    say,
    wait_ready,
    wait_until,
)
from tests.support.reservations import NOON

pytestmark = pytest.mark.anyio


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


def free_slots(cluster: Cluster) -> dict[str, int]:
    return {node.name: node.free_slots for node in cluster.snapshot().nodes}


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


class TestGangs:
    """Servers with a member on each of several nodes."""

    async def test_members_know_their_ranks_and_reach_each_other_by_name(
        self, cluster: LocalCluster, key: Key, tmp_path: Path
    ) -> None:
        server = await create_ready(cluster, make_spec(key, gpus=8, nodes=NODES))
        names = ",".join(member_name(server.reservation_id, rank) for rank in (0, 1))
        for rank, client in enumerate(clients_of(server, key, tmp_path)):
            done = await client.run("echo $RANK $NODE_RANK $WORLD_SIZE $MASTER_PORT $MULTINODE_HOSTS")
            assert done.out.split() == [str(rank), str(rank), "2", "29500", names]
            loop = "for host in $(echo $MULTINODE_HOSTS | tr , ' '); do ssh $host 'echo $RANK'; done"
            done = await client.run(loop)
            assert (done.out.split(), done.err, done.code) == (["0", "1"], "", 0)

    async def test_the_master_is_reached_at_its_address_and_port(
        self, cluster: LocalCluster, key: Key, tmp_path: Path
    ) -> None:
        """Rank 0 listens there, for a connection that it passes on to this test."""
        port = find_free_port()
        spec = make_spec(key, gpus=8, nodes=NODES, MASTER_PORT=str(port))
        first, second = clients_of(await create_ready(cluster, spec), key, tmp_path)

        async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"rank 0 is here")
            writer.close()
            await writer.wait_closed()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as here:
            passed_on = f"localhost:{port}:127.0.0.1:{here.sockets[0].getsockname()[1]}"
            listening = await first.start("echo listening; cat", "-R", passed_on)
            await hear(listening, "listening\n")
            done = await second.run("bash -c 'cat < /dev/tcp/$MASTER_ADDR/$MASTER_PORT'")
            assert done.out == "rank 0 is here", done.err
            assert await end_session(listening) == 0

    async def test_the_key_of_a_gang_opens_no_other_server(
        self, cluster: LocalCluster, key: Key, tmp_path: Path
    ) -> None:
        first, _ = clients_of(await create_ready(cluster, make_spec(key, gpus=2, nodes=NODES)), key, tmp_path)
        other = await create_ready(cluster, make_spec(key, gpus=2, nodes=NODES))
        assert other.address is not None
        host = member_name(other.reservation_id, 0)
        (known,) = other.host_keys
        options = f"-o HostKeyAlias={host} -o 'KnownHostsCommand=/bin/echo {host} {known}'"
        done = await first.run(
            f"ssh -o BatchMode=yes {options} -p {other.address.port} dev@{other.address.host} true"
        )
        assert "Permission denied" in done.err

    async def test_one_node_without_room_places_no_member(self, cluster: LocalCluster) -> None:
        await cluster.create_server(make_spec(gpus=1, node=NODES[1]))
        spec = make_spec(gpus=8, nodes=NODES)
        await cluster.create_server(spec)
        server = cluster.snapshot().servers[spec.reservation_id]
        assert (server.phase, len(server.members)) == (ServerPhase.UNPLACEABLE, 2)
        assert server.detail == (
            f"{member_name(spec.reservation_id, 1)} on t4-1: Node t4-1 has 3 of 4 free, and 4 are wanted."
        )
        assert free_slots(cluster) == {"t4-0": 4, "t4-1": 3}
        await cluster.delete_server(spec.reservation_id, server.uid)
        assert await cluster.find_server(spec.reservation_id) is None

    async def test_deleting_leaves_no_process_of_any_member(
        self, cluster: LocalCluster, key: Key, tmp_path: Path
    ) -> None:
        server = await create_ready(cluster, make_spec(key, gpus=8, nodes=NODES))
        for client in clients_of(server, key, tmp_path):
            await client.run(
                "setsid nohup sh -c 'touch ~/left; sleep 1000; true' >&- 2>&- <&- &"
                "until test -e ~/left; do sleep 0.01; done"
            )
        assert count_processes(server.reservation_id) >= len(NODES)
        await asyncio.gather(*(cluster.delete_server(server.reservation_id, server.uid) for _ in range(2)))
        assert count_processes(server.reservation_id) == 0
        assert await cluster.find_server(server.reservation_id) is None
        assert free_slots(cluster) == {"t4-0": 4, "t4-1": 4}

    async def test_a_member_that_died_without_an_owner_is_not_brought_back(
        self, state_dir: Path, isolation: Isolation
    ) -> None:
        spec = make_spec(gpus=8, nodes=NODES)
        async with LocalCluster(make_config(state_dir, isolation)) as cluster:
            await create_ready(cluster, spec)
        kill_member(state_dir, spec.reservation_id, 1)
        async with open_cluster(state_dir, isolation) as cluster:
            server = await wait_until(cluster, is_failed, spec.reservation_id)
            assert server is not None
            await wait_until(cluster, lambda seen: is_ready(seen, 0), spec.reservation_id)

    async def test_a_member_that_is_gone_is_left_out(self, cluster: LocalCluster, state_dir: Path) -> None:
        spec = make_spec(gpus=8, nodes=NODES)
        await create_ready(cluster, spec)
        (Records(state_dir).files_of(f"{spec.reservation_id[:8]}-1").directory / "record.json").unlink()
        server = await cluster.find_server(spec.reservation_id)
        assert server is not None
        assert server.nodes == ("t4-0",)
        await cluster.delete_server(spec.reservation_id, server.uid)
        assert await cluster.find_server(spec.reservation_id) is None
        assert count_processes(spec.reservation_id) == 0

    async def test_a_creation_that_was_cut_short_is_made_whole(
        self, state_dir: Path, isolation: Isolation, key: Key, tmp_path: Path
    ) -> None:
        """As if the process had died when the first of two members was written down."""
        spec = make_spec(key, gpus=8, nodes=NODES)
        records = Records(state_dir)
        records.make_directories()
        given = Given(tuple(node.gpus for node in make_config(state_dir, isolation).fleet.nodes))
        half, _ = draw_up(spec, given, (find_free_port(), 1))
        records.files_of(half.key).write_record(half)
        async with open_cluster(state_dir, isolation) as cluster:
            assert cluster.snapshot().servers[spec.reservation_id].nodes == ("t4-0",)
            server = await create_ready(cluster, spec)
            assert server.nodes == NODES
            for client in clients_of(server, key, tmp_path):
                assert (await client.run("ssh ${MULTINODE_HOSTS#*,} true")).code == 0

    async def test_a_gang_outlives_its_owner(
        self, state_dir: Path, isolation: Isolation, key: Key, tmp_path: Path
    ) -> None:
        spec = make_spec(key, gpus=8, nodes=NODES)
        async with LocalCluster(make_config(state_dir, isolation)) as cluster:
            before = await create_ready(cluster, spec)
        async with open_cluster(state_dir, isolation) as cluster:
            assert await wait_ready(cluster, spec.reservation_id) == before
            assert (await SshClient(before, key, tmp_path, 1).run("echo $RANK")).out == "1\n"


NODES = (NodeName("t4-0"), NodeName("t4-1"))


def is_failed(server: ObservedServer | None) -> bool:
    return server is not None and server.phase is ServerPhase.FAILED


def is_ready(server: ObservedServer | None, rank: int) -> bool:
    return server is not None and server.members[rank].phase is ServerPhase.READY


def kill_member(state_dir: Path, reservation_id: ReservationId, rank: int) -> None:
    processes = Records(state_dir).files_of(record_key(reservation_id[:8], rank)).find_processes()
    assert processes is not None
    with holding(processes.root) as root:
        assert root is not None
        root.send_signal(signal.SIGKILL)
        assert root.wait_blocking(PATIENCE_SECONDS)


def find_free_port() -> int:
    with bind_any_port() as listener:
        port: int = listener.getsockname()[1]
        return port


async def test_a_state_directory_has_one_owner(
    cluster: LocalCluster, state_dir: Path, isolation: Isolation
) -> None:
    with pytest.raises(Conflict, match="already runs"):
        async with LocalCluster(make_config(state_dir, isolation)):
            pass
