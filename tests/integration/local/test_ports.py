"""The ports of dev servers, which share their network with everything that runs inside them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gpudev.adapters.local.cluster import LocalCluster
from gpudev.adapters.local.ports import MAX_PORTS, NoPortFree, PortPool, PortRange, choose_pool_size
from gpudev.adapters.local.sandbox.isolation import Isolation
from gpudev.adapters.local.server_processes import stop_all_servers
from gpudev.domain.names import NodeName
from tests.support.local_cluster import (
    Key,
    SshClient,
    create_ready,
    hear,
    make_config,
    make_spec,
    wait_ready,
)
from tests.support.port_taker import PROGRAM, PYTHON_FOLDER, find_free_range, take_ports_command
from tests.support.words import words_of

SLOTS = 8
"""Of the fleet `test`: so many ports are held."""


@asynccontextmanager
async def open_with_ports(state_dir: Path, isolation: Isolation, ports: range) -> AsyncIterator[LocalCluster]:
    config = replace(
        make_config(state_dir, isolation),
        ports=PortRange(ports, is_strict=True),
        read_only_paths=(PYTHON_FOLDER,),
    )
    try:
        async with LocalCluster(config) as cluster:
            yield cluster
    finally:
        await asyncio.to_thread(stop_all_servers, state_dir)


@asynccontextmanager
async def taking_ports(client: SshClient, ports: range, expected: int) -> AsyncIterator[None]:
    """From inside a dev server, for as long as the context lasts; it has this many when the body begins."""
    process = await client.start(take_ports_command(ports))
    assert process.stdin is not None
    process.stdin.write(PROGRAM.read_bytes())
    process.stdin.close()
    try:
        await hear(process, f"{expected}\n")
        yield
    finally:
        process.kill()
        await process.wait()


@pytest.mark.anyio
async def test_one_sandbox_cannot_take_the_ports_of_the_others(
    state_dir: Path, isolation: Isolation, key: Key, tmp_path: Path
) -> None:
    ports = find_free_range(20)
    async with open_with_ports(state_dir, isolation, ports) as cluster:
        hostile = await create_ready(cluster, make_spec(key))
        client = SshClient(hostile, key, tmp_path)
        async with taking_ports(client, ports, expected=len(ports) - SLOTS):
            honest = await create_ready(cluster, make_spec(key))
            killed = await SshClient(honest, key, tmp_path).run("kill -KILL $PPID")
            assert killed.code != 0
            assert (await SshClient(honest, key, tmp_path).run("exit 7")).code == 7
            await cluster.delete_server(honest.reservation_id, honest.uid)
            # The port of a server that has ended is not free for a moment either.
            for _ in range(SLOTS - 1):
                await create_ready(cluster, make_spec(key, node=free_node(cluster)))


def free_node(cluster: LocalCluster) -> NodeName:
    return next(node.name for node in cluster.snapshot().nodes if node.free_slots)


@pytest.mark.anyio
async def test_a_server_without_a_port_says_so_and_starts_when_one_is_free(
    state_dir: Path, key: Key, tmp_path: Path
) -> None:
    ports = find_free_range(1)
    async with open_with_ports(state_dir, Isolation.NONE, ports) as cluster:
        first = await create_ready(cluster, make_spec(key))
        spec = make_spec(key)
        await cluster.create_server(spec)
        server = cluster.snapshot().servers[spec.reservation_id]
        assert f"all ports from {ports.start} to {ports.start}" in words_of(server.progress)
        assert server.address is None
        assert await cluster.find_server(spec.reservation_id) == server
        await cluster.delete_server(first.reservation_id, first.uid)
        started = await wait_ready(cluster, spec.reservation_id)
        assert (started.uid, words_of(started.progress)) == (server.uid, "")
        assert (await SshClient(started, key, tmp_path).run("exit 4")).code == 4


@pytest.mark.anyio
async def test_a_server_that_waits_for_a_port_can_be_deleted(state_dir: Path) -> None:
    ports = find_free_range(1)
    async with open_with_ports(state_dir, Isolation.NONE, ports) as cluster:
        with socket.socket() as stranger:
            cluster._ports.close()
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            stranger.bind(("127.0.0.1", ports.start))
            stranger.listen()
            spec = make_spec()
            await cluster.create_server(spec)
            server = cluster.snapshot().servers[spec.reservation_id]
            await cluster.delete_server(spec.reservation_id, server.uid)
            assert cluster.snapshot().servers == {}
        await create_ready(cluster, make_spec())


def test_a_pool_holds_its_ports_against_others() -> None:
    ports = find_free_range(3)
    pool = PortPool(PortRange(ports, is_strict=True))
    pool.fill(2)
    assert len(pool) == 2
    free = 0
    for port in ports:
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            free += other.connect_ex(("127.0.0.1", port)) != 0
    assert free == 1
    pool.close()


def test_a_pool_gives_all_or_none() -> None:
    pool = PortPool(PortRange(find_free_range(2), is_strict=True))
    with pytest.raises(NoPortFree, match="No port is free"):
        pool.take(3)
    assert len(pool) == 2
    listeners = pool.take(2)
    for listener in listeners:
        pool.give_back(listener)
    assert len(pool) == 2
    pool.close()


def test_who_connected_before_there_was_a_server_is_not_passed_on_to_it() -> None:
    pool = PortPool(PortRange(find_free_range(1), is_strict=True))
    pool.fill(1)
    (listener,) = pool.take()
    with socket.create_connection(listener.getsockname()) as early:
        pool.give_back(listener)
        assert early.recv(1) == b""
    (again,) = pool.take()
    with pytest.raises(BlockingIOError):
        again.accept()
    again.close()


def test_where_all_usual_ports_are_taken_another_is_used() -> None:
    usual = find_free_range(1)
    with socket.create_server(("127.0.0.1", usual.start)):
        (listener,) = PortPool(PortRange(usual)).take()
    assert listener.getsockname()[1] not in usual
    listener.close()


@pytest.mark.parametrize(
    "slots,placed,size",
    [
        pytest.param(8, 0, 8, id="one-for-each-slot"),
        pytest.param(8, 3, 5, id="less-those-in-use"),
        pytest.param(2, 4, 0, id="a-fleet-that-shrank"),
        pytest.param(5000, 0, MAX_PORTS, id="a-large-fleet"),
    ],
)
def test_the_size_of_the_pool(slots: int, placed: int, size: int) -> None:
    assert choose_pool_size(slots, placed) == size
