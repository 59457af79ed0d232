"""The cluster that the settings name, and the storage of its disks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from gpudev.adapters.local.cgroups import open_cgroups
from gpudev.adapters.local.ports import DEFAULT_PORTS, PortRange
from gpudev.adapters.local.records import LocalLogs
from gpudev.app.controllers.disks import SAFETY_NET
from gpudev.bootstrap.disks import open_volumes
from gpudev.bootstrap.foundation import (
    Stores,
    SystemClock,
    claim_database,
    claim_for,
    offered_catalogue,
    read_fleet,
    uses_kubernetes,
)
from gpudev.bootstrap.sandbox import read_sandboxing
from gpudev.domain.errors import Invalid
from gpudev.ports.cluster import Cluster, ServerLogs
from gpudev.ports.turns import Kind
from gpudev.ports.volumes import Volumes
from gpudev.settings import Settings


@dataclass(frozen=True, slots=True)
class Backends:
    """Where dev servers run, and where their disks are."""

    cluster: Cluster
    volumes: Volumes


@asynccontextmanager
async def open_backends(settings: Settings, stores: Stores) -> AsyncIterator[Backends]:
    async with (
        open_cluster(settings, stores) as cluster,
        open_volumes(settings, SystemClock()) as volumes,
    ):
        yield Backends(cluster, volumes)


@asynccontextmanager
async def open_cluster(settings: Settings, stores: Stores) -> AsyncIterator[Cluster]:
    """The cluster, and the database made its own: reservations of another would look lost from here."""
    opened = _open_kubernetes if uses_kubernetes(settings) else _open_local
    async with opened(settings, stores) as cluster:
        yield cluster


def make_logs(settings: Settings) -> ServerLogs | None:
    if uses_kubernetes(settings):
        from gpudev.adapters.kubernetes.cluster import KubernetesLogs  # noqa: PLC0415 - as below

        return KubernetesLogs(settings.kubernetes.kubeconfig, settings.kubernetes.namespace)
    return LocalLogs(settings.local.state_dir) if settings.local.state_dir else None


@asynccontextmanager
async def _open_local(settings: Settings, stores: Stores) -> AsyncIterator[Cluster]:
    if settings.local.state_dir is None:
        raise Invalid("no_cluster_configured", code="no_cluster")
    # Late: what only one machine needs is not installed elsewhere.
    from gpudev.adapters.local.cluster import LocalCluster  # noqa: PLC0415 - see above
    from gpudev.adapters.local.cluster_config import LocalClusterConfig  # noqa: PLC0415 - see above

    await claim_database(settings, stores)
    paths = tuple(path for path in settings.local.read_only_paths.split(":") if path)
    sandboxing = read_sandboxing(settings.local)
    config = LocalClusterConfig(
        state_dir=settings.local.state_dir,
        fleet=read_fleet(settings),
        isolation=sandboxing.isolation,
        bubblewrap=sandboxing.program,
        cgroups=open_cgroups(settings.local.cgroup),
        read_only_paths=paths,
        ports=PortRange(ports, is_strict=True) if (ports := settings.local.port_range) else DEFAULT_PORTS,
    )
    async with LocalCluster(config) as cluster:
        # The cluster's lock makes this the only controller, so no lease can be anybody's.
        now = SystemClock().now()
        await stores.turns.take_over(Kind.RESERVATION, now)
        await stores.turns.take_over(Kind.DISK, now, within=SAFETY_NET)
        yield cluster


@asynccontextmanager
async def _open_kubernetes(settings: Settings, stores: Stores) -> AsyncIterator[Cluster]:
    # Late: one machine does without all of this.
    from gpudev.adapters.kubernetes.cluster import KubernetesCluster  # noqa: PLC0415 - see above
    from gpudev.adapters.kubernetes.config import (  # noqa: PLC0415 - see above
        Homes,
        KubernetesConfig,
        PullPolicy,
        Reach,
        UserNamespaces,
    )

    chosen = settings.kubernetes
    config = KubernetesConfig(
        catalogue=offered_catalogue(settings),
        image=chosen.image,
        namespace=chosen.namespace,
        kubeconfig=chosen.kubeconfig,
        pull_policy=PullPolicy(chosen.pull_policy),
        pull_secrets=chosen.pull_secrets,
        reach=Reach(chosen.reach),
        port_slots=chosen.port_slots,
        workspace_gib=chosen.workspace_gib,
        home_gib=chosen.home_gib,
        storage_percent=chosen.storage_percent,
        user_namespaces=UserNamespaces(chosen.user_namespaces),
        closed_networks=chosen.closed_networks,
        zone_label=settings.disks.zone_label,
        homes=Homes.EBS if settings.disks.storage == "aws" else Homes.CLAIMS,
    )
    async with KubernetesCluster(config) as cluster:
        await claim_for(cluster.cluster_id, stores)
        yield cluster
