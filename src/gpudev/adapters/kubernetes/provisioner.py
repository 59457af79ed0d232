"""Creates the objects of a dev server, or adopts those of an earlier attempt.

The Service is created first, the Secret is owned by it, and the pod is created last: what a crash leaves
behind is either adopted by the next attempt or found by its label and removed. A gang shares one Service,
which is created before all others and whose uid identifies the gang.

The home of a server is a claim. Where disks are claims, it is the disk's own. Where they are EBS volumes, a
PersistentVolume and a claim are created for each reservation. The claim is removed with the reservation's
Service; the PersistentVolume is then `Released`, and removed here. Neither removal touches the EBS volume.
"""

from __future__ import annotations

import asyncio
import base64

import structlog

from gpudev.adapters.kubernetes.api_objects import (
    COMPONENT,
    FIELD_MANAGER,
    INCARNATION,
    MANAGED_BY,
    NAMESPACE,
    NAMESPACES,
    PERSISTENT_VOLUMES,
    Json,
    Kind,
    OwnKinds,
    annotations_of,
    name_of,
    owner_of,
    uid_of,
)
from gpudev.adapters.kubernetes.client import AlreadyExists, KubernetesClient
from gpudev.adapters.kubernetes.config import Homes, KubernetesConfig
from gpudev.adapters.kubernetes.manifests.network import (
    make_egress_policy,
    make_gang_policy,
    make_gang_service,
    make_ingress_policy,
    make_member_service,
    make_own_service,
)
from gpudev.adapters.kubernetes.manifests.pod import PodOrder, make_pod
from gpudev.adapters.kubernetes.manifests.resources import host_key_name
from gpudev.adapters.kubernetes.manifests.secret import (
    HostKey,
    Keys,
    make_host_key,
    make_secret,
    read_host_key,
)
from gpudev.adapters.kubernetes.manifests.storage import (
    COMPONENT_HOME,
    claim_name,
    make_home_claim,
    make_home_volume,
)
from gpudev.adapters.kubernetes.startup import make_startup, startup_name
from gpudev.adapters.kubernetes.view import View
from gpudev.domain.errors import ClusterUnavailable, Defect, Unavailable
from gpudev.domain.names import ReservationId
from gpudev.domain.server import ServerSpec

_log = structlog.get_logger(__name__)

_SWEEP_SECONDS = 30.0


class HomeClaims:
    def __init__(self, client: KubernetesClient, config: KubernetesConfig) -> None:
        self._client = client
        self._config = config
        self._claims = OwnKinds(config.namespace).claims

    async def prepare(self, spec: ServerSpec, service: Json) -> str:
        """The name of the claim; empty for a server without a disk."""
        home = spec.home
        if home is None:
            return ""
        if self._config.homes is Homes.CLAIMS:
            return home.volume_id
        manifest = make_home_volume(spec, home, self._config)
        volume = await create_or_adopt(self._client, PERSISTENT_VOLUMES, manifest, spec.reservation_id)
        # Of an earlier server of the same reservation: it never takes another claim.
        if is_left_over(volume):
            await self._client.delete(PERSISTENT_VOLUMES, name_of(volume), uid_of(volume))
            raise still_going(name_of(volume))
        manifest = make_home_claim(spec, home, self._config, service)
        claim = await create_or_adopt(self._client, self._claims, manifest, spec.reservation_id)
        if not _belongs_to(claim, service):
            await self._client.delete(self._claims, name_of(claim), uid_of(claim))
            raise still_going(name_of(claim))
        if any(map(_is_leaving, (volume, claim))):
            raise still_going(name_of(claim))
        return claim_name(spec, home)

    async def run(self) -> None:
        """Take away what is left of homes, for as long as we run."""
        while self._config.homes is Homes.EBS:
            try:
                await self.sweep()
            except Unavailable as error:
                _log.warning("homes_not_swept", error=error.message)
            await asyncio.sleep(_SWEEP_SECONDS)

    async def sweep(self) -> None:
        """Only the objects, and only those that say that the bytes behind them stay."""
        labels = {MANAGED_BY: FIELD_MANAGER, COMPONENT: COMPONENT_HOME, NAMESPACE: self._config.namespace}
        for volume in await self._client.find_all(PERSISTENT_VOLUMES, labels):
            if is_left_over(volume):
                await self._client.delete(PERSISTENT_VOLUMES, name_of(volume), uid_of(volume))


def is_left_over(volume: Json) -> bool:
    """Its claim is gone, so no pod can have it."""
    is_released = (volume.get("status") or {}).get("phase") == "Released"
    return is_released and volume["spec"].get("persistentVolumeReclaimPolicy") == "Retain"


def _is_leaving(item: Json) -> bool:
    return "deletionTimestamp" in item["metadata"]


def _belongs_to(item: Json, service: Json) -> bool:
    """What belongs to another Service goes with that one."""
    owners = {owner["uid"] for owner in item["metadata"].get("ownerReferences") or ()}
    return uid_of(service) in owners


async def create_or_adopt(
    client: KubernetesClient, kind: Kind, manifest: Json, reservation_id: ReservationId
) -> Json:
    """What has its name and belongs to another is never touched."""
    try:
        return await client.create(kind, manifest)
    except AlreadyExists:
        pass
    name = name_of(manifest)
    known = await client.find(kind, name)
    if known is None:
        raise still_going(name)
    if owner_of(known) != reservation_id:
        raise Defect(
            "cluster_object_of_another", kind=kind.plural, name=name, owner=owner_of(known), id=reservation_id
        )
    return known


def still_going(name: str) -> ClusterUnavailable:
    return ClusterUnavailable("cluster_object_going", name=name)


class Provisioner:
    def __init__(self, client: KubernetesClient, config: KubernetesConfig, view: View) -> None:
        self._client = client
        self._config = config
        self._view = view
        self._kinds = OwnKinds(config.namespace)
        self.homes = HomeClaims(client, config)

    async def prepare_namespace(self) -> str:
        """What all dev servers share: the namespace, their start-up files and their NetworkPolicies.

        The namespace's uid, which no other of that name has.
        """
        namespace = self._config.namespace
        known = await self._client.find(NAMESPACES, namespace)
        if known is None:
            manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            known = await self._client.create(NAMESPACES, manifest)
        await self._create_unless_there(self._kinds.config_maps, make_startup(namespace))
        # In this order: earlier versions kept one for both, by the name of the second, and the way out must
        # not be open meanwhile.
        for make_policy in (make_egress_policy, make_ingress_policy):
            await self._client.apply(self._kinds.network_policies, make_policy(self._config))
        return uid_of(known)

    async def make_server(self, spec: ServerSpec) -> list[Json]:
        """The pods of all members, by rank."""
        if spec.is_gang:
            return await self._make_gang(spec)
        service = await self._find_or_make_service(spec)
        (host_key,) = await self._make_keys(spec, service)
        return [await self._make_pod(spec, service, host_key)]

    async def _make_gang(self, spec: ServerSpec) -> list[Json]:
        gang = await self._make_service(make_gang_service(spec, self._config.namespace), spec)
        policy = make_gang_policy(spec, self._config.namespace, gang)
        await self._create_or_adopt(self._kinds.network_policies, policy, spec)
        services = [await self._find_or_make_service(spec)]
        for rank in range(1, len(spec.nodes)):
            own = make_member_service(spec, rank, self._config.namespace, gang)
            services.append(await self._make_service(own, spec))
        keys = await self._make_keys(spec, gang)
        return [
            await self._make_pod(spec, service, key, rank=rank, incarnation=uid_of(gang))
            for rank, (service, key) in enumerate(zip(services, keys, strict=True))
        ]

    async def _make_pod(
        self, spec: ServerSpec, service: Json, host_key: HostKey, *, rank: int = 0, incarnation: str = ""
    ) -> Json:
        node = self._view.find_node(spec.nodes[rank])
        order = PodOrder(
            spec=spec,
            config=self._config,
            service=name_of(service),
            secret=spec.name,
            startup=startup_name(),
            host_key=host_key.public,
            is_profiling=node is not None and node.is_profiling,
            node_storage_gib=node.storage_gib if node else 0,
            node_slots=node.slots if node else 0,
            has_user_namespaces=node is not None and node.has_user_namespaces,
            rank=rank,
            incarnation=incarnation,
            # In a gang the disk is the home of the first member alone.
            home=await self.homes.prepare(spec, service) if rank == 0 else "",
        )
        pod = await self._create_or_adopt(self._kinds.pods, make_pod(order), spec)
        if annotations_of(pod).get(INCARNATION, "") != incarnation:
            raise still_going(name_of(pod))
        return pod

    async def _find_or_make_service(self, spec: ServerSpec) -> Json:
        """The one that waits for it; where there is none any more, one of its own."""
        slot = self._view.find_service(spec.port_slot) if spec.port_slot else None
        if slot is not None and not slot.is_leaving:
            return {"metadata": {"name": slot.name, "uid": slot.uid}}
        return await self._make_service(make_own_service(spec, self._config.namespace), spec)

    async def _make_service(self, manifest: Json, spec: ServerSpec) -> Json:
        service = await self._create_or_adopt(self._kinds.services, manifest, spec)
        self._view.services.put(service)
        return service

    async def _make_keys(self, spec: ServerSpec, service: Json) -> tuple[HostKey, ...]:
        """The keys of an earlier try are kept, unless their Secret hangs from a Service that is going."""
        keys = _draw_keys(spec)
        manifest = make_secret(spec, self._config.namespace, keys, service)
        secret = await self._create_or_adopt(self._kinds.secrets, manifest, spec)
        if not _belongs_to(secret, service):
            await self._client.delete(self._kinds.secrets, name_of(secret), uid_of(secret))
            secret = await self._create_or_adopt(self._kinds.secrets, manifest, spec)
        return tuple(_read_key(secret, host_key_name(rank)) for rank in range(len(spec.nodes)))

    async def _create_or_adopt(self, kind: Kind, manifest: Json, spec: ServerSpec) -> Json:
        return await create_or_adopt(self._client, kind, manifest, spec.reservation_id)

    async def _create_unless_there(self, kind: Kind, manifest: Json) -> None:
        try:
            await self._client.create(kind, manifest)
        except AlreadyExists:
            return


def _draw_keys(spec: ServerSpec) -> Keys:
    hosts = tuple(make_host_key() for _ in spec.nodes)
    return Keys(hosts, make_host_key() if spec.is_gang else None)


def _read_key(secret: Json, name: str) -> HostKey:
    return read_host_key(base64.b64decode(secret["data"][name]).decode())
