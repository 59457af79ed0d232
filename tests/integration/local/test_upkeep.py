"""Dev servers and the processes around them, when things are killed or cannot start."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gpudev.adapters.local.cluster import LocalCluster
from gpudev.adapters.local.devserver import launcher
from gpudev.adapters.local.processes.identity import find_parent
from gpudev.adapters.local.record import Record
from gpudev.adapters.local.records import Records
from gpudev.adapters.local.sandbox.isolation import Isolation
from gpudev.adapters.local.server_processes import end_server, stop_all_servers
from gpudev.domain.errors import Conflict, Invalid
from gpudev.domain.names import NodeName, server_name
from gpudev.domain.server import ObservedServer, ServerPhase
from tests.support.local_cluster import (
    PATIENCE_SECONDS,
    Key,
    SshClient,
    count_processes,
    create_ready,
    hear,
    make_config,
    make_spec,
    need,
    open_cluster,
    say,
    wait_ready,
    wait_until,
)
from tests.support.words import words_of

pytestmark = pytest.mark.anyio


def kill_zygote(cluster: LocalCluster) -> None:
    zygote = cluster._launcher._zygote
    assert zygote is not None
    zygote._process.kill()
    zygote._process.wait()


async def test_a_killed_zygote_takes_no_server_along_and_is_started_again(
    cluster: LocalCluster, key: Key, tmp_path: Path
) -> None:
    first = await create_ready(cluster, make_spec(key))
    session = await SshClient(first, key, tmp_path).start("cat")
    await say(session, "before")
    await hear(session, "before\n")
    kill_zygote(cluster)
    await create_ready(cluster, make_spec(key))
    await say(session, "after")
    await hear(session, "after\n")
    session.kill()
    await session.wait()


async def test_servers_start_without_a_zygote_if_it_must_be(
    cluster: LocalCluster, key: Key, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cluster._launcher.warm_up()
    kill_zygote(cluster)
    start_program = launcher._start_program

    def refuse_zygotes(module: str, *rest: object) -> subprocess.Popen[bytes]:
        if module == "zygote":
            raise OSError("no zygote today")
        return start_program(module, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(launcher, "_start_program", refuse_zygotes)
    server = await create_ready(cluster, make_spec(key))
    assert (await SshClient(server, key, tmp_path).run("exit 5")).code == 5
    await cluster.delete_server(server.reservation_id, server.uid)


async def test_a_user_who_kills_the_ssh_server_gets_it_back(
    cluster: LocalCluster, key: Key, tmp_path: Path
) -> None:
    before = await create_ready(cluster, make_spec(key))
    client = SshClient(before, key, tmp_path)
    changes = cluster.changes()
    await client.run("setsid sleep 1000 & kill -KILL $PPID")
    async with asyncio.timeout(PATIENCE_SECONDS):
        await anext(changes)
    assert await wait_ready(cluster, before.reservation_id) == before
    assert count_processes(before.reservation_id) == 0
    assert (await client.run("exit 7")).code == 7


async def test_a_sandboxed_server_does_without_its_keeper(state_dir: Path, key: Key, tmp_path: Path) -> None:
    async with open_cluster(state_dir, need(Isolation.BUBBLEWRAP)) as cluster:
        server = await create_ready(cluster, make_spec(key))
        process = Records(state_dir).files_of(server.reservation_id[:8]).find_processes()
        assert process is not None
        monitor = find_parent(process.root.pid)
        keeper = find_parent(monitor or 0)
        assert monitor is not None
        assert keeper is not None
        os.kill(keeper, signal.SIGKILL)
        os.kill(monitor, signal.SIGKILL)
        assert (await SshClient(server, key, tmp_path).run("exit 6")).code == 6
        await cluster.delete_server(server.reservation_id, server.uid)
        assert count_processes(server.reservation_id) == 0


async def test_what_can_not_start_fails_with_its_own_words(cluster: LocalCluster, state_dir: Path) -> None:
    spec = make_spec()
    Records(state_dir).home_of(spec.reservation_id[:8]).write_text("not a directory")
    await cluster.create_server(spec)

    def has_failed(server: ObservedServer | None) -> bool:
        return server is not None and server.phase is ServerPhase.FAILED

    server = await wait_until(cluster, has_failed, spec.reservation_id)
    assert server is not None
    assert "FileExistsError" in words_of(server.detail)
    await cluster.delete_server(spec.reservation_id, server.uid)
    assert await cluster.find_server(spec.reservation_id) is None


async def test_a_record_that_somebody_removed_is_a_server_that_is_gone(
    cluster: LocalCluster, state_dir: Path
) -> None:
    server = await create_ready(cluster, make_spec())
    (Records(state_dir).files_of(server.reservation_id[:8]).directory / "record.json").unlink()
    assert await cluster.find_server(server.reservation_id) is None
    assert count_processes(server.reservation_id) == 0


@asynccontextmanager
async def taken_port(port: int) -> AsyncIterator[None]:
    """A stranger that listens on the port and says something of its own."""

    def speak(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"I am somebody else\n")
        writer.close()

    async with await asyncio.start_server(speak, "127.0.0.1", port, reuse_address=True):
        yield


async def make_and_lose(state_dir: Path, isolation: Isolation) -> Record:
    """The record of a server that was ready once and has ended, with no owner to start it again."""
    async with LocalCluster(make_config(state_dir, isolation)) as cluster:
        server = await create_ready(cluster, make_spec())
    files = Records(state_dir).files_of(server.reservation_id[:8])
    end_server(server_name(server.reservation_id), files.find_processes())
    record = files.find_record()
    assert record is not None
    return record


async def test_a_port_that_was_never_told_is_given_up_to_a_stranger(
    state_dir: Path, isolation: Isolation
) -> None:
    record = await make_and_lose(state_dir, isolation)
    Records(state_dir).files_of(record.key).write_record(replace(record, has_answered=False))
    async with taken_port(record.port), open_cluster(state_dir, isolation) as cluster:
        server = await wait_ready(cluster, record.spec.reservation_id)
        assert server.address is not None
        assert server.address.port != record.port


async def test_a_port_that_was_told_is_waited_for(state_dir: Path, isolation: Isolation) -> None:
    record = await make_and_lose(state_dir, isolation)
    async with open_cluster_beside(record.port, state_dir, isolation) as cluster:
        server = await wait_ready(cluster, record.spec.reservation_id)
        assert server.address is not None
        assert server.address.port == record.port


@asynccontextmanager
async def open_cluster_beside(
    port: int, state_dir: Path, isolation: Isolation
) -> AsyncIterator[LocalCluster]:
    """A cluster opened while a stranger has the port, who leaves once the server was refused it."""
    async with AsyncExitStack() as stack:
        async with taken_port(port):
            cluster = await stack.enter_async_context(open_cluster(state_dir, isolation))
            (reservation_id,) = cluster.snapshot().servers
            await wait_until(
                cluster, lambda seen: seen is not None and "in use" in words_of(seen.detail), reservation_id
            )
        yield cluster


async def test_cpu_nodes_have_servers_too(
    state_dir: Path, isolation: Isolation, key: Key, tmp_path: Path
) -> None:
    fleet = tmp_path / "fleet.toml"
    fleet.write_text('[[nodes]]\ntype = "cpu-x86"\n')
    async with open_cluster(state_dir, isolation, fleet=str(fleet)) as cluster:
        server = await create_ready(cluster, make_spec(key, gpus=0, node=NodeName("cpu-x86-0")))
        done = await SshClient(server, key, tmp_path).run(
            "echo [$CUDA_VISIBLE_DEVICES] $NVIDIA_VISIBLE_DEVICES"
        )
        assert done.out == "[] void\n"
        assert [node.free_slots for node in cluster.snapshot().nodes] == [2]


async def test_stop_all_ends_every_server_and_keeps_homes(state_dir: Path, isolation: Isolation) -> None:
    specs = [make_spec(), make_spec()]
    async with LocalCluster(make_config(state_dir, isolation)) as cluster:
        for spec in specs:
            await create_ready(cluster, spec)
        with pytest.raises(Conflict):
            stop_all_servers(state_dir)
    assert stop_all_servers(state_dir) == 2
    assert sum(count_processes(spec.reservation_id) for spec in specs) == 0
    assert Records(state_dir).list_records() == ()
    assert all(Records(state_dir).home_of(spec.reservation_id[:8]).is_dir() for spec in specs)
    assert stop_all_servers(state_dir) == 0


@pytest.fixture
def shown(tmp_path: Path) -> Path:
    """A directory that every user may read, with a file in it."""
    tmp_path.chmod(0o755)
    (tmp_path / "shown").write_text("shown")
    return tmp_path


async def test_the_state_directory_is_hidden_even_below_a_shown_path(
    state_dir: Path, key: Key, shown: Path, tmp_path: Path
) -> None:
    config = replace(make_config(state_dir, need(Isolation.BUBBLEWRAP)), read_only_paths=(str(shown),))
    async with LocalCluster(config) as cluster:
        server = await create_ready(cluster, make_spec(key))
        done = await SshClient(server, key, tmp_path).run(f"cat {shown}/shown; ls -A {state_dir}")
        await cluster.delete_server(server.reservation_id, server.uid)
    assert done.out == "shown"


def test_nothing_inside_the_state_directory_can_be_shown(state_dir: Path) -> None:
    config = replace(make_config(state_dir, Isolation.NONE), read_only_paths=(str(state_dir / "homes"),))
    with pytest.raises(Invalid, match="no dev server may see"):
        LocalCluster(config)
