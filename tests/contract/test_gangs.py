"""Servers with a member on each of several nodes of this machine: real processes, real `ssh`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gpudev.adapters.local.allotment import Given, draw_up
from gpudev.adapters.local.cluster import LocalCluster
from gpudev.adapters.local.ports import bind_any_port
from gpudev.adapters.local.records import Records
from gpudev.adapters.local.sandbox.isolation import Isolation
from gpudev.domain.names import NodeName, member_name
from gpudev.domain.server import ObservedServer, ServerPhase
from tests.contract.cluster_rules import clients_of
from tests.support.local_cluster import (
    Key,
    SshClient,
    count_processes,
    create_ready,
    end_session,
    free_slots,
    hear,
    kill_member,
    make_config,
    make_spec,
    open_cluster,
    wait_ready,
    wait_until,
)
from tests.support.words import words_of

pytestmark = pytest.mark.anyio


NODES = (NodeName("t4-0"), NodeName("t4-1"))


def is_failed(server: ObservedServer | None) -> bool:
    return server is not None and server.phase is ServerPhase.FAILED


def is_ready(server: ObservedServer | None, rank: int) -> bool:
    return server is not None and server.members[rank].phase is ServerPhase.READY


def find_free_port() -> int:
    with bind_any_port() as listener:
        port: int = listener.getsockname()[1]
        return port


async def test_members_know_their_ranks_and_reach_each_other_by_name(
    cluster: LocalCluster, key: Key, tmp_path: Path
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
    cluster: LocalCluster, key: Key, tmp_path: Path
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
    cluster: LocalCluster, key: Key, tmp_path: Path
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


async def test_one_node_without_room_places_no_member(cluster: LocalCluster) -> None:
    await cluster.create_server(make_spec(gpus=1, node=NODES[1]))
    spec = make_spec(gpus=8, nodes=NODES)
    await cluster.create_server(spec)
    server = cluster.snapshot().servers[spec.reservation_id]
    assert (server.phase, len(server.members)) == (ServerPhase.UNPLACEABLE, 2)
    assert words_of(server.detail) == (
        f"{member_name(spec.reservation_id, 1)} on t4-1: Node t4-1 has 3 of 4 free, and 4 are wanted."
    )
    assert free_slots(cluster) == {"t4-0": 4, "t4-1": 3}
    await cluster.delete_server(spec.reservation_id, server.uid)
    assert await cluster.find_server(spec.reservation_id) is None


async def test_deleting_leaves_no_process_of_any_member(
    cluster: LocalCluster, key: Key, tmp_path: Path
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
    state_dir: Path, isolation: Isolation
) -> None:
    spec = make_spec(gpus=8, nodes=NODES)
    async with LocalCluster(make_config(state_dir, isolation)) as cluster:
        await create_ready(cluster, spec)
    kill_member(state_dir, spec.reservation_id, 1)
    async with open_cluster(state_dir, isolation) as cluster:
        server = await wait_until(cluster, is_failed, spec.reservation_id)
        assert server is not None
        await wait_until(cluster, lambda seen: is_ready(seen, 0), spec.reservation_id)


async def test_a_member_that_is_gone_is_left_out(cluster: LocalCluster, state_dir: Path) -> None:
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
    state_dir: Path, isolation: Isolation, key: Key, tmp_path: Path
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
    state_dir: Path, isolation: Isolation, key: Key, tmp_path: Path
) -> None:
    spec = make_spec(key, gpus=8, nodes=NODES)
    async with LocalCluster(make_config(state_dir, isolation)) as cluster:
        before = await create_ready(cluster, spec)
    async with open_cluster(state_dir, isolation) as cluster:
        assert await wait_ready(cluster, spec.reservation_id) == before
        assert (await SshClient(before, key, tmp_path, 1).run("echo $RANK")).out == "1\n"
