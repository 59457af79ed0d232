"""NetworkPolicies in force: who reaches whom, and that it is the policy that keeps the others out.

Each test ends by removing the policy: what was closed is open then, so somebody was there all the time.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gpudev.adapters.kubernetes.config import KubernetesConfig
from gpudev.domain.names import NodeName, member_name, server_name
from gpudev.domain.server import ObservedServer
from gpudev.ports.cluster import Cluster as ClusterPort
from tests.cluster.manifests import SSH_PORT, pod
from tests.support.infra.chart import render
from tests.support.kubernetes import banner
from tests.support.kubernetes.access import Access
from tests.support.kubernetes.cluster import Cluster
from tests.support.kubernetes.kubeconfig import API_PORT
from tests.support.kubernetes.processes import Process
from tests.support.kubernetes_backend import NODE, OTHER_NODE, KubernetesBackend, make_config, make_spec
from tests.support.kubernetes_roles import CONTROLLER, applied_roles
from tests.support.local_cluster import Key, SshClient, create_ready, make_key
from tests.support.machine import wait_for

pytestmark = pytest.mark.anyio

DIAL = Path(__file__).with_name("dial.sh")
LISTEN = Path(__file__).with_name("listen.pl")
INGRESS, EGRESS = "gpu-dev-servers", "gpu-dev-servers-out"
METADATA = "169.254.169.254"
API_SERVICE_PORT = 8080
DATABASE_PORT = 5432
METRICS_PORT = 9090
OTHER_PORT = 8000
WEB_PORT = 80


@pytest.fixture(scope="module", autouse=True)
def enforced(cluster: Cluster, access: Access) -> Iterator[None]:
    with cluster.network_policies.enforced(access):
        yield
    assert not any(enforcer.has_rules() for enforcer in cluster.network_policies.enforcers)


@dataclass(frozen=True, slots=True)
class Inside:
    """The inside of a pod: whom it reaches, and what it can be asked for."""

    access: Access
    namespace: str
    name: str

    @property
    def address(self) -> str:
        found = self.access.get("pod", self.name, f"--namespace={self.namespace}")
        return str(found["status"]["podIP"])

    def listen(self, port: int) -> None:
        self._run("perl", "-", str(port), stdin=LISTEN.read_text())

    def resolve(self, name: str) -> str:
        return self._run("getent", "hosts", name)

    def reaches(self, address: str, port: int) -> bool:
        said = self._run("bash", "-s", address, str(port), stdin=DIAL.read_text()).strip()
        assert said in {"reached", "closed"}
        return said == "reached"

    def _run(self, *command: str, stdin: str = "") -> str:
        here = ("exec", "--stdin", f"--namespace={self.namespace}", self.name)
        return self.access.kubectl(*here, "--", *command, stdin=stdin)


async def until_closed(asker: Inside, address: str, port: int) -> None:
    """The rules are written a moment after a pod has its address."""
    is_closed = partial(_is_closed, asker, address, port)
    await asyncio.to_thread(wait_for, is_closed, f"{asker.name} is kept from {address}:{port}")


async def until_open(asker: Inside, address: str, port: int) -> None:
    is_open = partial(asker.reaches, address, port)
    await asyncio.to_thread(wait_for, is_open, f"{asker.name} reaches {address}:{port}")


def _is_closed(asker: Inside, address: str, port: int) -> bool:
    return not asker.reaches(address, port)


@dataclass(frozen=True, slots=True)
class Place:
    """A namespace of dev servers and its controller."""

    access: Access
    config: KubernetesConfig
    cluster: ClusterPort
    key: Key

    async def make_server(self, *nodes: NodeName) -> tuple[ObservedServer, list[Inside]]:
        spec = make_spec(self.key, gpus=len(nodes), node=nodes[0], nodes=nodes)
        server = await create_ready(self.cluster, spec)
        names = [member_name(spec.reservation_id, rank) for rank in range(len(nodes))]
        return server, [Inside(self.access, self.config.namespace, name) for name in names]

    def remove_policy(self, name: str) -> None:
        self.access.kubectl("delete", "networkpolicy", name, f"--namespace={self.config.namespace}")


@pytest.fixture
def config(access: Access, namespace: str) -> Iterator[KubernetesConfig]:
    with applied_roles(access, namespace):
        yield make_config(access.kubeconfig_for(CONTROLLER, namespace), namespace)


@pytest.fixture
def key(tmp_path: Path) -> Key:
    return make_key(tmp_path)


@pytest.fixture
async def place(access: Access, config: KubernetesConfig, key: Key) -> AsyncIterator[Place]:
    async with KubernetesBackend(config).open() as opened:
        yield Place(access, config, opened, key)


@pytest.fixture
async def walled_place(
    access: Access, cluster: Cluster, config: KubernetesConfig, key: Key
) -> AsyncIterator[Place]:
    """Where the whole network of the cluster is closed to dev servers: nodes, pods and API server."""
    walled = replace(config, closed_networks=(str(cluster.addresses.cluster),))
    async with KubernetesBackend(walled).open() as opened:
        yield Place(access, walled, opened, key)


@pytest.mark.parametrize("node", [NODE, OTHER_NODE])
async def test_a_dev_server_reaches_another_by_ssh_alone(place: Place, node: NodeName) -> None:
    _, (asker,) = await place.make_server(NODE)
    _, (asked,) = await place.make_server(node)
    asked.listen(OTHER_PORT)
    await until_closed(asker, asked.address, OTHER_PORT)
    assert asker.reaches(asked.address, SSH_PORT)
    place.remove_policy(INGRESS)
    await until_open(asker, asked.address, OTHER_PORT)


@pytest.fixture
def metadata_service(cluster: Cluster, tmp_path: Path) -> Iterator[str]:
    """What a cloud has at every node, in the node's own network; the address of the node answers, too."""
    node = cluster.nodes[NODE]
    address = ("address", "add", f"{METADATA}/32", "dev", "lo")
    service = Process("metadata-service", tmp_path)
    node.namespaces.run("ip", *address)
    service.start([sys.executable, str(banner.__file__), str(WEB_PORT)], inside=node.namespaces)
    try:
        service.wait_until(partial(is_listening, str(node.address), WEB_PORT), "listening")
        yield str(node.address)
    finally:
        service.stop()
        node.namespaces.run("ip", "address", "delete", *address[2:])


def is_listening(address: str, port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex((address, port)) == 0


async def test_the_metadata_service_is_closed_and_the_node_and_the_api_server_are_not(
    place: Place, cluster: Cluster, metadata_service: str
) -> None:
    _, (asker,) = await place.make_server(NODE)
    await until_closed(asker, METADATA, WEB_PORT)
    assert asker.reaches(metadata_service, WEB_PORT)
    assert asker.reaches(str(cluster.addresses.host), API_PORT)
    place.remove_policy(EGRESS)
    await until_open(asker, METADATA, WEB_PORT)


async def test_closed_networks_are_closed_but_for_names_and_who_comes_from_outside(
    walled_place: Place, cluster: Cluster, metadata_service: str, key: Key, tmp_path: Path
) -> None:
    server, (asker,) = await walled_place.make_server(NODE)
    _, (asked,) = await walled_place.make_server(OTHER_NODE)
    closed = {
        "another's SSH": (asked.address, SSH_PORT),
        "the API server": (str(cluster.addresses.host), API_PORT),
        "the node": (metadata_service, WEB_PORT),
    }
    for address, port in closed.values():
        await until_closed(asker, address, port)
    assert asker.resolve("kubernetes.default.svc.cluster.local").startswith(
        str(cluster.addresses.services[1])
    )
    assert (await SshClient(server, key, tmp_path).run("echo in")).out == "in\n"
    walled_place.remove_policy(EGRESS)
    for address, port in closed.values():
        await until_open(asker, address, port)


async def test_a_gang_is_open_to_its_members_and_closed_to_others(walled_place: Place) -> None:
    server, (first, second) = await walled_place.make_server(NODE, OTHER_NODE)
    _, (stranger,) = await walled_place.make_server(NODE)
    for member, other in ((first, second), (second, first)):
        member.listen(OTHER_PORT)
        await until_closed(stranger, member.address, OTHER_PORT)
        await until_open(other, member.address, OTHER_PORT)
    walled_place.remove_policy(f"{server_name(server.reservation_id)}-gang")
    await until_closed(first, second.address, OTHER_PORT)
    for name in (INGRESS, EGRESS):
        walled_place.remove_policy(name)
    await until_open(stranger, second.address, OTHER_PORT)


def labelled(name: str, node: NodeName, **labels: str) -> dict[str, Any]:
    made = pod(name, node, "sleep", "inf")
    made["metadata"]["labels"] = labels
    return made


@pytest.fixture
def control_plane(access: Access, namespace: str) -> dict[str, Inside]:
    """Pods that bear the labels of the chart's, with the policies that it keeps for them."""
    policies = [
        policy
        for policy in render("generic", (), "--namespace", namespace).of_kind("NetworkPolicy")
        if policy["metadata"]["namespace"] == namespace
    ]
    pods = [
        labelled("database", NODE, app="postgres"),
        labelled("api", OTHER_NODE, app="api-service", **{"gpu-dev/uses-database": "true"}),
        labelled("other", OTHER_NODE, app="registry-cache"),
    ]
    access.create([*policies, *pods], namespace)
    for one in pods:
        access.wait(f"pod/{one['metadata']['name']}", "condition=Ready", namespace)
    return {one["metadata"]["name"]: Inside(access, namespace, one["metadata"]["name"]) for one in pods}


async def test_the_database_of_the_chart_is_open_to_those_alone_who_use_it(
    access: Access, namespace: str, control_plane: dict[str, Inside]
) -> None:
    database, api, other = control_plane.values()
    database.listen(DATABASE_PORT)
    await until_closed(other, database.address, DATABASE_PORT)
    await until_open(api, database.address, DATABASE_PORT)
    access.kubectl("delete", "networkpolicy", "--all", f"--namespace={namespace}")
    await until_open(other, database.address, DATABASE_PORT)


async def test_of_the_chart_only_the_doors_that_are_named_are_open(
    access: Access, namespace: str, control_plane: dict[str, Inside]
) -> None:
    _, api, other = control_plane.values()
    for port in (API_SERVICE_PORT, METRICS_PORT):
        api.listen(port)
    await until_closed(other, api.address, METRICS_PORT)
    await until_open(other, api.address, API_SERVICE_PORT)
    access.kubectl("delete", "networkpolicy", "--all", f"--namespace={namespace}")
    await until_open(other, api.address, METRICS_PORT)
