"""The storage of a cluster as the storage of disks: a volume is a claim, kept between reservations.

The classes of volumes and snapshots have to say Retain. So whatever deletes a claim, a snapshot or the whole
namespace, the bytes stay; only `delete_volume` and `delete_snapshot` let the driver remove them, by changing
that policy for the one object to delete.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from gpudev.adapters.kubernetes.api_objects import (
    HOME,
    NODES,
    PERSISTENT_VOLUMES,
    Json,
    Kind,
    OwnKinds,
    annotations_of,
    labels_of,
    name_of,
    uid_of,
)
from gpudev.adapters.kubernetes.client import AlreadyExists, KubernetesClient, connect
from gpudev.adapters.kubernetes.config import ClaimConfig
from gpudev.adapters.kubernetes.disks.claims import (
    OF_VOLUME,
    SNAPSHOT,
    TOKEN,
    VOLUME,
    ZONE,
    ClaimContext,
    holders_of,
    is_of,
    labels_for,
    patch_for,
    snapshot_from,
    volume_from,
    zone_of,
)
from gpudev.adapters.kubernetes.disks.policies import Policies
from gpudev.adapters.kubernetes.manifests.storage import make_claim, make_snapshot, size_quantity
from gpudev.adapters.kubernetes.pod_status import find_condition
from gpudev.domain.disk import DiskId, SnapshotId, VolumeId
from gpudev.domain.errors import ClusterUnavailable, Defect, StorageRefused, StorageUnavailable
from gpudev.domain.names import NodeName
from gpudev.domain.volume import (
    DiskTags,
    FileListing,
    Holdings,
    ObservedSnapshot,
    ObservedVolume,
    SnapshotSpec,
    VolumeSpec,
)
from gpudev.texts.fact import Fact, fact


@contextmanager
def translated_errors(what: Fact) -> Iterator[None]:
    """No answer is `StorageUnavailable`; what is not allowed or not accepted is `StorageRefused`."""
    try:
        yield
    except ClusterUnavailable as error:
        if error.fact.key == "cluster_forbidden":
            raise StorageRefused("storage_forbidden", what=what, cause=error.fact) from error
        raise StorageUnavailable("storage_silent", what=what, cause=error.fact) from error
    except Defect as error:
        raise StorageRefused("storage_refused", what=what, cause=error.fact) from error


class KubernetesVolumes:
    def __init__(self, client: KubernetesClient, config: ClaimConfig) -> None:
        self._client = client
        self._config = config
        self._kinds = OwnKinds(config.namespace)
        self._policies = Policies(client, config)

    async def find(self, disk_id: DiskId, volume_id: VolumeId | None) -> Holdings:
        with translated_errors(fact("to_find_disk", id=disk_id)):
            claims = await self._client.find_all(self._kinds.claims, labels_for(VOLUME, disk_id))
            if volume_id and volume_id not in map(name_of, claims):
                named = await self._client.find(self._kinds.claims, volume_id)
                claims += [named] if named is not None else []
            volumes = await asyncio.gather(*map(self._observe, claims))
            snapshots = await self._find_snapshots(disk_id, [name_of(claim) for claim in claims])
        return Holdings(tuple(volumes), snapshots)

    async def list_volumes(self) -> tuple[ObservedVolume, ...]:
        with translated_errors(fact("to_list_volumes")):
            claims = await self._client.find_all(self._kinds.claims, labels_for(VOLUME, None))
            volumes, _ = await self._client.list_all(PERSISTENT_VOLUMES)
            pods, _ = await self._client.list_all(self._kinds.pods)
            classes = set(map(_class_of, claims))
            waiting = {name: await self._policies.waits_for_pods(name) for name in classes}
        by_name, holders = {name_of(volume): volume for volume in volumes}, holders_of(pods)
        return tuple(
            self._show(
                claim,
                by_name.get(claim["spec"].get("volumeName", "")),
                holders,
                waits_for_pods=waiting[_class_of(claim)],
            )
            for claim in claims
        )

    async def list_snapshots(self) -> tuple[ObservedSnapshot, ...]:
        with translated_errors(fact("to_list_snapshots")):
            found = await self._client.find_all(self._kinds.volume_snapshots, labels_for(SNAPSHOT, None))
        return tuple(map(snapshot_from, found))

    async def create_volume(self, spec: VolumeSpec) -> None:
        with translated_errors(fact("to_make_volume")):
            await self._policies.check_classes()
            node = await self._choose_node(spec) if spec.source_snapshot_id else None
            await self._create(self._kinds.claims, make_claim(spec, self._config, node), spec.token)

    async def grow_volume(self, volume_id: VolumeId, size_gb: int) -> None:
        with translated_errors(fact("to_grow_volume", id=volume_id)):
            claim = await self._get(self._kinds.claims, volume_id, VOLUME)
            await self._policies.check_growth(claim)
            change = {"spec": {"resources": {"requests": {"storage": size_quantity(size_gb)}}}}
            await self._client.patch(self._kinds.claims, volume_id, change)

    async def create_snapshot(self, spec: SnapshotSpec) -> None:
        with translated_errors(fact("to_snapshot_volume", id=spec.volume_id)):
            await self._policies.check_classes()
            claim = await self._get(self._kinds.claims, spec.volume_id, VOLUME)
            volume = await self._find_volume_of(claim)
            zone = zone_of(volume, self._config.zone_label) if volume else ""
            await self._create(
                self._kinds.volume_snapshots, make_snapshot(spec, self._config, zone), spec.token
            )

    async def set_tags(
        self, volume_ids: Sequence[VolumeId], snapshot_ids: Sequence[SnapshotId], tags: DiskTags
    ) -> None:
        """A claim that somebody else has made is kept from now on whatever happens to it."""
        change = patch_for(tags)
        with translated_errors(fact("to_tag")):
            for volume_id in volume_ids:
                claim = await self._get(self._kinds.claims, volume_id, VOLUME)
                volume = await self._find_volume_of(claim)
                if volume is not None:
                    await self._policies.keep_volume(volume)
                await self._client.patch(self._kinds.claims, volume_id, change)
            for snapshot_id in snapshot_ids:
                await self._client.patch(self._kinds.volume_snapshots, snapshot_id, change)

    async def delete_volume(self, volume_id: VolumeId) -> None:
        with translated_errors(fact("to_delete_volume", id=volume_id)):
            claim = await self._client.find(self._kinds.claims, volume_id)
            if claim is None:
                return
            if not is_of(VOLUME, claim):
                raise StorageRefused("claim_not_ours", id=volume_id)
            pods, _ = await self._client.list_all(self._kinds.pods)
            if holder := holders_of(pods).get(volume_id):
                raise StorageRefused("volume_attached_to_pod", id=volume_id, holder=holder)
            volume = await self._find_volume_of(claim)
            if volume is not None:
                await self._policies.let_volume_go(volume)
            await self._client.delete(self._kinds.claims, volume_id, uid_of(claim))

    async def delete_snapshot(self, snapshot_id: SnapshotId) -> None:
        with translated_errors(fact("to_delete_snapshot", id=snapshot_id)):
            snapshot = await self._client.find(self._kinds.volume_snapshots, snapshot_id)
            if snapshot is None:
                return
            if not is_of(SNAPSHOT, snapshot):
                raise StorageRefused("snapshot_not_ours", id=snapshot_id)
            await self._policies.let_snapshot_go(snapshot)
            await self._client.delete(self._kinds.volume_snapshots, snapshot_id, uid_of(snapshot))

    async def list_files(self, snapshot_id: SnapshotId) -> FileListing | None:  # noqa: ARG002 - the port's
        """A snapshot cannot be read without a pod that mounts it."""
        return None

    async def _observe(self, claim: Json) -> ObservedVolume:
        """Our pods say by a label which claim is their home."""
        pods = await self._client.find_all(self._kinds.pods, {HOME: name_of(claim)})
        volume = await self._find_volume_of(claim)
        waits_for_pods = await self._policies.waits_for_pods(_class_of(claim))
        return self._show(claim, volume, holders_of(pods), waits_for_pods=waits_for_pods)

    def _show(
        self, claim: Json, volume: Json | None, holders: Mapping[str, str], *, waits_for_pods: bool
    ) -> ObservedVolume:
        holder = holders.get(name_of(claim), "")
        return volume_from(claim, ClaimContext(volume, holder, waits_for_pods, self._config.zone_label))

    async def _find_snapshots(self, disk_id: DiskId, claims: list[str]) -> tuple[ObservedSnapshot, ...]:
        kind = self._kinds.volume_snapshots
        found = await self._client.find_all(kind, labels_for(SNAPSHOT, disk_id))
        for claim in claims:
            found += await self._client.find_all(kind, {**labels_for(SNAPSHOT, None), OF_VOLUME: claim})
        return tuple(map(snapshot_from, {name_of(item): item for item in found}.values()))

    async def _find_volume_of(self, claim: Json) -> Json | None:
        name = claim["spec"].get("volumeName")
        return await self._client.find(PERSISTENT_VOLUMES, name) if name else None

    async def _get(self, kind: Kind, name: str, component: str) -> Json:
        found = await self._client.find(kind, name)
        if found is None or not is_of(component, found):
            raise StorageUnavailable("storage_object_missing", name=name)
        return found

    async def _create(self, kind: Kind, manifest: Json, token: str) -> None:
        try:
            await self._client.create(kind, manifest)
        except AlreadyExists:
            known = await self._client.find(kind, name_of(manifest))
            if known is not None and annotations_of(known).get(TOKEN) != token:
                raise StorageRefused("storage_object_of_another", name=name_of(manifest)) from None

    async def _choose_node(self, spec: VolumeSpec) -> NodeName:
        """A copy is made at once: if it waited for a pod, its source could go before it is there."""
        source = await self._get(self._kinds.volume_snapshots, spec.source_snapshot_id or "", SNAPSHOT)
        zone = spec.zone or annotations_of(source).get(ZONE, "")
        nodes, _ = await self._client.list_all(NODES)
        fitting = [
            name_of(node)
            for node in nodes
            if find_condition(node, "Ready").get("status") == "True"
            and (not zone or labels_of(node).get(self._config.zone_label) == zone)
        ]
        if not fitting:
            raise StorageUnavailable("no_ready_node_in_zone", label=self._config.zone_label, zone=zone)
        return NodeName(min(fitting))


def _class_of(claim: Json) -> str:
    return str(claim["spec"].get("storageClassName") or "")


class ClaimListings:
    """Each look has a connection of its own."""

    def __init__(self, kubeconfig: str, config: ClaimConfig) -> None:
        self._kubeconfig = kubeconfig
        self._config = config

    async def list_volumes(self) -> tuple[ObservedVolume, ...]:
        async with connect(self._kubeconfig) as client:
            return await KubernetesVolumes(client, self._config).list_volumes()

    async def list_snapshots(self) -> tuple[ObservedSnapshot, ...]:
        async with connect(self._kubeconfig) as client:
            return await KubernetesVolumes(client, self._config).list_snapshots()
