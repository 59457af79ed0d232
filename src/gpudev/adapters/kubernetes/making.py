"""Making the objects of a dev server, or adopting those of an earlier try.

The Service comes first, the Secret hangs from it, and the pod comes last: whatever a crash leaves behind is
either adopted by the next try or found by its label and taken away. Of a gang, the Service that its
members share comes before all others, and its uid is that of the whole.
"""

from __future__ import annotations

import base64

from gpudev.adapters.kubernetes.adopting import create_or_adopt, still_going
from gpudev.adapters.kubernetes.client import AlreadyExists, Kind, KubernetesClient
from gpudev.adapters.kubernetes.config import KubernetesConfig
from gpudev.adapters.kubernetes.homes import HomeClaims
from gpudev.adapters.kubernetes.host_key import HostKey, make_host_key, read_host_key
from gpudev.adapters.kubernetes.kinds import NAMESPACES, OwnKinds
from gpudev.adapters.kubernetes.labels import (
    INCARNATION,
    Json,
    annotations_of,
    name_of,
    uid_of,
)
from gpudev.adapters.kubernetes.manifests.config_map import make_startup, startup_name
from gpudev.adapters.kubernetes.manifests.network_policy import (
    make_egress_policy,
    make_gang_policy,
    make_ingress_policy,
)
from gpudev.adapters.kubernetes.manifests.pod import PodOrder, make_pod
from gpudev.adapters.kubernetes.manifests.secret import Keys, make_secret
from gpudev.adapters.kubernetes.manifests.service import (
    make_gang_service,
    make_member_service,
    make_own_service,
)
from gpudev.adapters.kubernetes.manifests.volumes import host_key_name
from gpudev.adapters.kubernetes.view import View
from gpudev.domain.server import ServerSpec


class Maker:
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
        owners = {owner["uid"] for owner in secret["metadata"].get("ownerReferences") or ()}
        if uid_of(service) not in owners:
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
