"""Dev servers of a real Kubernetes, for tests: types small enough for the test cluster, and a backend."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

from gpudev.adapters.kubernetes.cluster import KubernetesCluster
from gpudev.adapters.kubernetes.config import KubernetesConfig, PullPolicy
from gpudev.domain.catalogue import DEFAULT_CATALOGUE, Catalogue, Share
from gpudev.domain.names import NodeName, ReservationId
from gpudev.domain.server import ObservedServer, ServerSpec
from gpudev.ports.cluster import Cluster
from tests.support.kubernetes.images import DEVSERVER
from tests.support.local_cluster import Key, SshClient, wait_until

NODE = NodeName("node-a")
OTHER_NODE = NodeName("node-b")
TINY = Share(Fraction(1, 100), Fraction(1), Fraction(1, 32), Fraction(1, 4))
CATALOGUE = Catalogue(
    tuple(replace(DEFAULT_CATALOGUE.get(name), share_per_slot=TINY) for name in ("h100", "a100"))
)
_TYPES = {NODE: "h100", OTHER_NODE: "a100"}


def make_config(kubeconfig: Path, namespace: str, *, port_slots: int = 0) -> KubernetesConfig:
    return KubernetesConfig(
        catalogue=CATALOGUE,
        image=DEVSERVER.name,
        namespace=namespace,
        kubeconfig=str(kubeconfig),
        pull_policy=PullPolicy.NEVER,
        port_slots=port_slots,
        workspace_gib=1,
    )


def make_spec(
    key: Key | None = None, *, gpus: int = 1, node: NodeName = NODE, nodes: tuple[NodeName, ...] = ()
) -> ServerSpec:
    reservation_id = ReservationId(str(uuid.uuid4()))
    return ServerSpec(
        reservation_id=reservation_id,
        reservation_name=f"run-{reservation_id[:8]}",
        username="ada",
        nodes=nodes or (node,),
        gpu_type=_TYPES.get(node, "h100"),
        gpu_count=gpus,
        share=TINY,
        duration=timedelta(hours=1),
        ssh_public_keys=(key.public,) if key else (),
    )


async def _delete_all(cluster: Cluster) -> None:
    """And wait until they are gone: the next test counts what is free on the same nodes."""
    servers = tuple(cluster.snapshot().servers.values())
    await asyncio.gather(*(cluster.delete_server(one.reservation_id, one.uid) for one in servers))
    for server in servers:
        await wait_until(cluster, lambda seen: seen is None, server.reservation_id)


@dataclass(frozen=True, slots=True)
class KubernetesBackend:
    config: KubernetesConfig
    node: NodeName = NODE
    nodes: tuple[NodeName, NodeName] = (NODE, OTHER_NODE)
    at_once: int = 5

    def make_spec(
        self,
        key: Key | None = None,
        *,
        gpus: int = 1,
        node: NodeName | None = None,
        nodes: tuple[NodeName, ...] = (),
    ) -> ServerSpec:
        return make_spec(key, gpus=gpus, node=node or self.node, nodes=nodes)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Cluster]:
        async with KubernetesCluster(self.config) as cluster:
            try:
                yield cluster
            finally:
                await _delete_all(cluster)

    async def end_main_process(
        self, server: ObservedServer, key: Key, directory: Path, rank: int = 0
    ) -> None:
        await SshClient(server, key, directory, rank).run("sudo kill 1")
