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
from gpudev.domain.job import Job
from gpudev.domain.names import NodeName, ReservationId, id8, member_name
from gpudev.domain.notices import Notice
from gpudev.domain.server import ObservedServer, ServerPhase, ServerSpec
from gpudev.ports.cluster import CapacityChanged, Cluster, ServerChanged
from gpudev.texts.fact import fact
from tests.support.local_cluster import (
    PATIENCE_SECONDS,
    Key,
    SshClient,
    create_ready,
    hear,
    make_key,
    wait_ready,
    wait_until,
)
from tests.support.words import words_of

WARNING = Notice("WARN_EXPIRES_IN_30MIN.txt", fact("words", words="30 minutes are left."))
LAST_WARNING = Notice("WARN_EXPIRES_IN_5MIN.txt", fact("words", words="5 minutes are left."))


class Backend(Protocol):
    """One kind of cluster, as these tests need it."""

    node: NodeName
    """A node with GPUs that nobody else takes from meanwhile."""
    nodes: tuple[NodeName, NodeName]
    """Two, for gangs; the first is `node`."""
    at_once: int
    """How many servers may be started together."""

    def make_spec(
        self,
        key: Key | None = None,
        *,
        gpus: int = 1,
        node: NodeName | None = None,
        nodes: tuple[NodeName, ...] = (),
    ) -> ServerSpec: ...

    def open(self) -> AbstractAsyncContextManager[Cluster]:
        """A cluster that leaves nothing behind."""
        ...

    async def end_main_process(
        self, server: ObservedServer, key: Key, directory: Path, rank: int = 0
    ) -> None:
        """End what a member of the server hangs from, as a user or a kernel may."""
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
        assert words_of(server.detail)
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

    async def test_a_look_at_what_is_being_made_does_not_end_it(
        self, backend: Backend, cluster: Cluster
    ) -> None:
        spec = backend.make_spec()
        making = asyncio.create_task(cluster.create_server(spec))
        while not making.done():
            await cluster.find_server(spec.reservation_id)
            await asyncio.sleep(0)
        await making
        assert (await wait_ready(cluster, spec.reservation_id)).reservation_id == spec.reservation_id

    async def test_changes_are_told_to_every_listener(self, backend: Backend, cluster: Cluster) -> None:
        """A server that comes or goes, and room that came back."""
        listeners = [cluster.changes(), cluster.changes()]
        spec = backend.make_spec()
        server = await create_ready(cluster, spec)
        await cluster.delete_server(spec.reservation_id, server.uid)
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

    async def test_notices_stand_in_the_home_and_older_ones_go(
        self, backend: Backend, cluster: Cluster, key: Key, tmp_path: Path
    ) -> None:
        spec = backend.make_spec(key)
        server = await create_ready(cluster, spec)
        client = SshClient(server, key, tmp_path)
        await client.run("echo mine > ~/WARN_MINE.txt")
        for notices in [(WARNING,), (LAST_WARNING,)]:
            await cluster.tell(spec.reservation_id, server.uid, notices)
            [notice] = notices
            assert (await client.run("cat ~/WARN_EXPIRES*")).out == f"{notice.text}\n"
        assert (await client.run("stat -c %U:%a ~/WARN_EXPIRES* && rm ~/WARN_EXPIRES*")).out.endswith(
            ":644\n"
        )
        await cluster.tell(spec.reservation_id, server.uid, (WARNING,))
        await cluster.tell(spec.reservation_id, server.uid, ())
        assert (await client.run("ls ~ | grep WARN")).out == "WARN_MINE.txt\n"

    async def test_a_notice_is_shown_on_terminals_once(
        self, backend: Backend, cluster: Cluster, key: Key, tmp_path: Path
    ) -> None:
        spec = backend.make_spec(key)
        server = await create_ready(cluster, spec)
        session = await SshClient(server, key, tmp_path).start_shell()
        await hear(session, "@")
        for notices in [(WARNING,), (WARNING,), (LAST_WARNING,)]:
            await cluster.tell(spec.reservation_id, server.uid, notices)
        heard = await hear(session, LAST_WARNING.text)
        assert heard.count(WARNING.text) == 1
        session.kill()
        await session.wait()

    async def test_a_notice_never_follows_or_fills_what_somebody_put_in_its_place(
        self, backend: Backend, cluster: Cluster, key: Key, tmp_path: Path
    ) -> None:
        spec = backend.make_spec(key)
        server = await create_ready(cluster, spec)
        client = SshClient(server, key, tmp_path)
        await client.run(
            f"echo precious > ~/precious; ln -s precious ~/{WARNING.file_name}; mkfifo ~/OOM_DETECTED.txt"
        )
        await cluster.tell(
            spec.reservation_id,
            server.uid,
            (WARNING, Notice("OOM_DETECTED.txt", fact("words", words="Once."))),
        )
        done = await client.run(f"cat ~/precious ~/{WARNING.file_name} ~/OOM_DETECTED.txt")
        assert done.out == f"precious\n{WARNING.text}\nOnce.\n"

    async def test_another_incarnation_is_told_nothing(
        self, backend: Backend, cluster: Cluster, key: Key, tmp_path: Path
    ) -> None:
        spec = backend.make_spec(key)
        server = await create_ready(cluster, spec)
        await cluster.tell(spec.reservation_id, str(uuid.uuid4()), (WARNING,))
        await cluster.tell(backend.make_spec().reservation_id, server.uid, (WARNING,))
        assert (await SshClient(server, key, tmp_path).run("ls ~/WARN*")).out == ""

    async def test_a_submitted_command_is_known_by_its_files(
        self, backend: Backend, cluster: Cluster, key: Key, tmp_path: Path
    ) -> None:
        spec = backend.make_spec(key)
        server = await create_ready(cluster, spec)
        assert await cluster.find_job(spec.reservation_id, server.uid) is None
        run = f"submit/{id8(spec.reservation_id)}/run"
        command = (
            f"mkdir -p {run}; cd {run}; echo words > output; echo 7 > code; ln -s code why; mkfifo fetched"
        )
        await SshClient(server, key, tmp_path).run(command)
        assert await cluster.find_job(spec.reservation_id, server.uid) == Job(7, output="words\n")
        assert await cluster.find_job(spec.reservation_id, str(uuid.uuid4())) is None

    async def test_a_closed_cluster_is_unavailable(self, backend: Backend) -> None:
        async with backend.open() as cluster:
            listener = cluster.changes()
        with pytest.raises(ClusterUnavailable):
            cluster.snapshot()
        assert [change async for change in listener] == []


class GangRules:
    """Servers with a member on each of several nodes."""

    async def test_every_member_is_in_the_snapshot_and_takes_its_node(
        self, backend: Backend, cluster: Cluster
    ) -> None:
        before = [count_free(cluster, node) for node in backend.nodes]
        spec = backend.make_spec(gpus=4, nodes=backend.nodes)
        await cluster.create_server(spec)
        server = cluster.snapshot().servers[spec.reservation_id]
        assert [(member.rank, member.node) for member in server.members] == [*enumerate(backend.nodes)]
        assert [count_free(cluster, node) for node in backend.nodes] == [free - 2 for free in before]

    async def test_members_know_their_ranks_and_reach_each_other_by_name(
        self, backend: Backend, cluster: Cluster, key: Key, tmp_path: Path
    ) -> None:
        server = await create_ready(cluster, backend.make_spec(key, gpus=2, nodes=backend.nodes))
        for rank, client in enumerate(clients_of(server, key, tmp_path)):
            done = await client.run("echo $RANK $NODE_RANK $WORLD_SIZE $MASTER_PORT")
            assert done.out.split() == [str(rank), str(rank), "2", "29500"]
            loop = "for host in $(echo $MULTINODE_HOSTS | tr , ' '); do ssh $host 'echo $RANK'; done"
            done = await client.run(loop)
            assert (done.out.split(), done.err, done.code) == (["0", "1"], "", 0)

    async def test_creating_a_gang_again_adopts(self, backend: Backend, cluster: Cluster) -> None:
        spec = backend.make_spec(gpus=2, nodes=backend.nodes)
        first = await create_ready(cluster, spec)
        await cluster.create_server(spec)
        assert cluster.snapshot().servers == {spec.reservation_id: first}
        assert await cluster.find_server(spec.reservation_id, 2) == first

    async def test_one_node_without_room_makes_the_whole_unplaceable(
        self, backend: Backend, cluster: Cluster
    ) -> None:
        taken = count_free(cluster, backend.nodes[1])
        await cluster.create_server(backend.make_spec(gpus=taken, node=backend.nodes[1]))
        spec = backend.make_spec(gpus=2, nodes=backend.nodes)
        await cluster.create_server(spec)
        server = await wait_unplaceable(cluster, spec)
        assert len(server.members) == 2
        assert words_of(server.detail).startswith(
            f"{member_name(spec.reservation_id, 1)} on {backend.nodes[1]}: "
        )
        await cluster.delete_server(spec.reservation_id, server.uid)
        await wait_gone(cluster, spec.reservation_id)
        assert await cluster.find_server(spec.reservation_id, 2) is None

    async def test_deleting_a_gang_leaves_nothing(self, backend: Backend, cluster: Cluster) -> None:
        before = [count_free(cluster, node) for node in backend.nodes]
        spec = backend.make_spec(gpus=2, nodes=backend.nodes)
        server = await create_ready(cluster, spec)
        await cluster.delete_server(spec.reservation_id, str(uuid.uuid4()))
        assert await cluster.find_server(spec.reservation_id, 2) == server
        deletions = (cluster.delete_server(spec.reservation_id, server.uid) for _ in range(2))
        await asyncio.gather(*deletions)
        await wait_gone(cluster, spec.reservation_id)
        assert await cluster.find_server(spec.reservation_id, 2) is None
        assert [count_free(cluster, node) for node in backend.nodes] == before

    @pytest.mark.parametrize("rank", [0, 1])
    async def test_a_member_that_ends_fails_the_whole_and_is_named(
        self, backend: Backend, cluster: Cluster, key: Key, tmp_path: Path, rank: int
    ) -> None:
        spec = backend.make_spec(key, gpus=2, nodes=backend.nodes)
        await backend.end_main_process(await create_ready(cluster, spec), key, tmp_path, rank)
        server = await wait_until(
            cluster,
            lambda seen: seen is not None and seen.phase is ServerPhase.FAILED,
            spec.reservation_id,
        )
        assert server is not None
        assert words_of(server.detail).startswith(
            f"{member_name(spec.reservation_id, rank)} on {backend.nodes[rank]}: "
        )
        assert server.members[1 - rank].phase is ServerPhase.READY

    async def test_both_members_of_a_gang_are_told(
        self, backend: Backend, cluster: Cluster, key: Key, tmp_path: Path
    ) -> None:
        server = await create_ready(cluster, backend.make_spec(key, gpus=2, nodes=backend.nodes))
        await cluster.tell(server.reservation_id, server.uid, (WARNING,))
        for client in clients_of(server, key, tmp_path):
            assert (await client.run(f"cat ~/{WARNING.file_name}")).out == f"{WARNING.text}\n"


def clients_of(server: ObservedServer, key: Key, directory: Path) -> list[SshClient]:
    return [SshClient(server, key, directory, member.rank) for member in server.members]
