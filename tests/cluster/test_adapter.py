"""What only a Kubernetes can be asked: outages, orphans, keys, port slots, and rights that are not given."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gpudev.adapters.kubernetes.api_objects import ALL_PODS, OwnKinds
from gpudev.adapters.kubernetes.client import Expired, connect
from gpudev.adapters.kubernetes.cluster import KubernetesCluster, KubernetesLogs
from gpudev.adapters.kubernetes.config import KubernetesConfig, Reach
from gpudev.adapters.kubernetes.manifests.pod import CONTAINER
from gpudev.app.controllers.run import OrphanController
from gpudev.bootstrap.foundation import Stores
from gpudev.domain.errors import ClusterUnavailable, Defect, NotFound
from gpudev.domain.idle import Signal
from gpudev.domain.names import id8, server_name
from gpudev.domain.notices import Notice
from gpudev.ports.cluster import Cluster as ClusterPort
from gpudev.ports.cluster import LogQuery
from gpudev.texts.fact import fact
from tests.support.kubernetes.access import Access
from tests.support.kubernetes.cluster import Cluster
from tests.support.kubernetes_backend import NODE, OTHER_NODE, KubernetesBackend, make_config, make_spec
from tests.support.kubernetes_roles import API, CONTROLLER, applied_roles
from tests.support.local_cluster import (
    Key,
    SshClient,
    create_ready,
    hear,
    make_key,
    wait_ready,
    wait_until,
)
from tests.support.reservations import NOON, make_reservation, open_test_stores, submit

pytestmark = pytest.mark.anyio


@pytest.fixture
def config(access: Access, namespace: str) -> Iterator[KubernetesConfig]:
    with applied_roles(access, namespace):
        yield make_config(access.kubeconfig_for(CONTROLLER, namespace), namespace)


@pytest.fixture
async def opened(config: KubernetesConfig) -> AsyncIterator[ClusterPort]:
    async with KubernetesBackend(config).open() as cluster:
        yield cluster


@pytest.fixture
def key(tmp_path: Path) -> Key:
    return make_key(tmp_path)


async def test_an_api_server_that_does_not_answer_is_never_read_as_gone(
    opened: ClusterPort, cluster: Cluster, key: Key, tmp_path: Path
) -> None:
    server = await create_ready(opened, make_spec(key))
    api_server = cluster.control_plane.api_server
    await asyncio.to_thread(api_server.stop)
    try:
        with pytest.raises(ClusterUnavailable):
            await opened.find_server(server.reservation_id)
        assert opened.snapshot().servers[server.reservation_id] == server
        assert (await SshClient(server, key, tmp_path).run("true")).code == 0
    finally:
        await asyncio.to_thread(api_server.start)
    assert await opened.find_server(server.reservation_id) == server
    await opened.delete_server(server.reservation_id, server.uid)
    await wait_until(opened, lambda seen: seen is None, server.reservation_id)


async def test_another_controller_sees_and_ends_what_the_first_has_made(
    opened: ClusterPort, config: KubernetesConfig
) -> None:
    server = await create_ready(opened, make_spec())
    async with KubernetesCluster(config) as other:
        assert await wait_ready(other, server.reservation_id) == server
        await other.delete_server(server.reservation_id, server.uid)
        await wait_until(other, lambda seen: seen is None, server.reservation_id)
    await wait_until(opened, lambda seen: seen is None, server.reservation_id)


async def test_a_making_that_was_cut_off_is_finished_with_the_same_host_key(
    opened: ClusterPort, config: KubernetesConfig, access: Access
) -> None:
    spec = make_spec()
    first = await create_ready(opened, spec)
    access.kubectl("delete", "pod", spec.name, f"--namespace={config.namespace}")
    await wait_until(opened, lambda seen: seen is None, spec.reservation_id)
    second = await create_ready(opened, spec)
    assert second.uid != first.uid
    assert (second.host_keys, second.address) == (first.host_keys, first.address)


async def test_something_of_another_with_our_name_is_left_as_it_is(
    opened: ClusterPort, config: KubernetesConfig, access: Access
) -> None:
    spec = make_spec()
    foreign = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": spec.name},
        "stringData": {"a": "b"},
    }
    access.create([foreign], config.namespace)
    before = access.get("secret", spec.name, f"--namespace={config.namespace}")
    with pytest.raises(Defect, match="is not ours"):
        await opened.create_server(spec)
    assert access.get("secret", spec.name, f"--namespace={config.namespace}") == before


async def test_the_controllers_may_not_list_secrets(config: KubernetesConfig) -> None:
    async with connect(config.kubeconfig) as client:
        with pytest.raises(ClusterUnavailable, match="does not let us"):
            await client.list_all(OwnKinds(config.namespace).secrets)


async def test_a_namespace_that_is_new_takes_no_pods_yet_and_says_so(cluster: Cluster) -> None:
    """The controller manager makes its account, and here it does not."""
    manager = cluster.control_plane.controller_manager
    name = f"test-{id8(make_spec().reservation_id)}"
    await asyncio.to_thread(manager.process.stop)
    try:
        cluster.access.kubectl("create", "namespace", name)
        async with KubernetesCluster(make_config(cluster.kubeconfig, name)) as opened:
            with pytest.raises(ClusterUnavailable, match="takes no pods yet") as refused:
                await opened.create_server(make_spec())
            assert refused.value.hint == ""
    finally:
        await asyncio.to_thread(manager.start)
        cluster.access.kubectl("delete", "namespace", name, "--wait=false")


async def test_a_watch_from_a_version_that_is_forgotten_says_so(config: KubernetesConfig) -> None:
    async with connect(config.kubeconfig) as client:
        with pytest.raises(Expired):
            await anext(client.watch(ALL_PODS, "1"))


async def test_a_port_slot_leads_to_its_server_and_is_discarded(
    config: KubernetesConfig, key: Key, tmp_path: Path
) -> None:
    async with KubernetesBackend(replace(config, port_slots=1)).open() as cluster:
        async with asyncio.timeout(30):
            while not cluster.snapshot().port_slots:  # noqa: ASYNC110 - a new slot is told to nobody
                await asyncio.sleep(0.05)
        (slot,) = cluster.snapshot().port_slots
        server = await create_ready(cluster, replace(make_spec(key), port_slot=slot))
        assert (await SshClient(server, key, tmp_path).run("true")).code == 0
        assert slot not in cluster.snapshot().port_slots
        await cluster.delete_server(server.reservation_id, server.uid)
        await cluster.discard_port_slot(slot)
        await cluster.discard_port_slot(slot)
        await wait_until(cluster, lambda seen: seen is None, server.reservation_id)
        assert slot not in cluster.snapshot().port_slots


@pytest.mark.parametrize("reach", [Reach.POD, Reach.PROBE], ids=str)
async def test_a_server_becomes_ready_by_other_ways(
    config: KubernetesConfig, key: Key, tmp_path: Path, reach: Reach
) -> None:
    async with KubernetesBackend(replace(config, reach=reach)).open() as cluster:
        await create_ready(cluster, make_spec(key))


@dataclass(frozen=True, slots=True)
class LaterClock:
    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(minutes=2)


@pytest.fixture
async def stores(database: str) -> AsyncIterator[Stores]:
    async with open_test_stores(database) as opened:
        yield opened


async def test_what_belongs_to_no_reservation_is_removed_and_the_rest_stays(
    opened: ClusterPort, stores: Stores
) -> None:
    user = await stores.users.upsert("ada")
    known = await submit(stores, make_reservation(user, gpu_type="h100"))
    await opened.create_server(replace(make_spec(), reservation_id=known.id))
    unknown = make_spec()
    await opened.create_server(unknown)
    await OrphanController(stores.reservations, opened, LaterClock()).turn("everything")
    await wait_until(opened, lambda seen: seen is None, unknown.reservation_id)
    assert set(opened.snapshot().servers) == {known.id}
    owners = {one.reservation_id for one in opened.list_leftovers()}
    assert owners == {known.id}


async def test_the_log_of_a_server_is_read_with_the_rights_of_the_api(
    opened: ClusterPort, config: KubernetesConfig, access: Access
) -> None:
    server = await create_ready(opened, make_spec())
    logs = KubernetesLogs(str(access.kubeconfig_for(API, config.namespace)), config.namespace)
    text = b"".join([chunk async for chunk in logs.read(server.reservation_id, LogQuery(tail=50))])
    assert b"Server listening on" in text
    followed = logs.read(server.reservation_id, LogQuery(follow=True))
    assert await anext(followed)
    unknown = make_spec().reservation_id
    with pytest.raises(NotFound, match=id8(unknown)):
        await anext(logs.read(unknown, LogQuery()))


async def test_the_use_of_a_server_is_measured(opened: ClusterPort, key: Key, tmp_path: Path) -> None:
    """The nodes of the test have no real GPUs, and do not say that they are simulated."""
    server = await create_ready(opened, make_spec(key))
    first = await opened.measure(server.reservation_id, server.uid, NOON)
    assert first is not None
    assert first.absent == {Signal.JUPYTER}
    assert set(first.signals) == {Signal.SSH}
    session = await SshClient(server, key, tmp_path).start("echo here; while :; do :; done")
    await hear(session, "here")
    second = await opened.measure(server.reservation_id, server.uid, NOON)
    assert second is not None
    assert second.signals[Signal.SSH] >= 1
    assert second.signals[Signal.CPU] >= 0
    session.kill()
    await session.wait()
    assert await opened.measure(server.reservation_id, "another", NOON) is None


async def test_what_the_kernel_ends_for_want_of_memory_is_counted(
    opened: ClusterPort, key: Key, tmp_path: Path
) -> None:
    """The server itself goes on, so that the cluster says nothing of it."""
    server = await create_ready(opened, make_spec(key))
    assert server.oom_kills == 0
    ended = await SshClient(server, key, tmp_path).run("tail /dev/zero")
    assert ended.code != 0
    assert await opened.measure(server.reservation_id, server.uid, NOON) is not None
    seen = opened.snapshot().servers[server.reservation_id]
    assert (seen.oom_kills, seen.last_oom_at, seen.phase) == (1, NOON, server.phase)


async def test_a_server_that_cannot_be_asked_is_neither_told_nor_idle(
    opened: ClusterPort, cluster: Cluster
) -> None:
    server = await create_ready(opened, make_spec())
    api_server = cluster.control_plane.api_server
    await asyncio.to_thread(api_server.stop)
    try:
        with pytest.raises(ClusterUnavailable):
            await opened.tell(
                server.reservation_id, server.uid, (Notice("WARN_IDLE.txt", fact("words", words="Words.")),)
            )
        usage = await opened.measure(server.reservation_id, server.uid, NOON)
    finally:
        await asyncio.to_thread(api_server.start)
    assert usage is not None
    assert usage.signals == {}


async def test_a_gang_that_is_half_there_is_made_whole_under_the_same_uid(
    opened: ClusterPort, config: KubernetesConfig, access: Access, key: Key, tmp_path: Path
) -> None:
    """As if the controller had died when the first of two pods was made."""
    spec = make_spec(key, gpus=2, nodes=(NODE, OTHER_NODE))
    before = await create_ready(opened, spec)
    access.kubectl("delete", "pod", spec.member_names[1], f"--namespace={config.namespace}")
    half = await opened.find_server(spec.reservation_id, 2)
    assert half is not None
    assert (half.nodes, half.uid) == ((NODE,), before.uid)
    await wait_until(opened, lambda seen: seen is not None and seen.nodes == (NODE,), spec.reservation_id)
    after = await create_ready(opened, spec)
    assert (after.uid, after.nodes) == (before.uid, before.nodes)
    assert [member.host_keys for member in after.members] == [member.host_keys for member in before.members]
    for rank in (0, 1):
        done = await SshClient(after, key, tmp_path, rank).run("ssh ${MULTINODE_HOSTS#*,} echo here")
        assert done.out == "here\n", done.err


async def test_what_is_left_of_a_gang_without_its_first_is_found_and_ended(
    opened: ClusterPort, config: KubernetesConfig, access: Access
) -> None:
    spec = make_spec(gpus=2, nodes=(NODE, OTHER_NODE))
    before = await create_ready(opened, spec)
    access.kubectl("delete", "pod", spec.name, f"--namespace={config.namespace}")
    left = await opened.find_server(spec.reservation_id, 2)
    assert left is not None
    assert ([member.rank for member in left.members], left.uid) == ([1], before.uid)
    await opened.delete_server(spec.reservation_id, before.uid)
    await wait_until(opened, lambda seen: seen is None, spec.reservation_id)
    assert opened.list_leftovers() == ()


async def test_a_program_that_is_not_there_did_not_run(opened: ClusterPort, config: KubernetesConfig) -> None:
    server = await create_ready(opened, make_spec())
    pods, name = OwnKinds(config.namespace).pods, server_name(server.reservation_id)
    async with connect(config.kubeconfig) as client:
        with pytest.raises(ClusterUnavailable, match="could not be run"):
            await client.run(pods, name, CONTAINER, ("/no/such/program",), b"")
        assert (await client.run(pods, name, CONTAINER, ("sh", "-c", "exit 3"), b"")).code == 3
