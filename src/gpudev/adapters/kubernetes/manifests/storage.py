"""Claims and snapshots of disks, and the PersistentVolume and claim that make an EBS volume a home.

The latter two belong to one reservation and are removed after it. Neither owns the bytes: the policy is
Retain, and the driver is never asked to create or delete a volume.
"""

from __future__ import annotations

from gpudev.adapters.kubernetes.api_objects import NAMESPACE, Json
from gpudev.adapters.kubernetes.config import ClaimConfig, KubernetesConfig
from gpudev.adapters.kubernetes.disks.claims import (
    OF_VOLUME,
    SELECTED_NODE,
    SNAPSHOT,
    SOURCE,
    TOKEN,
    VOLUME,
    ZONE,
    annotations_for,
    labels_for,
    name_from,
)
from gpudev.adapters.kubernetes.manifests.metadata import make_metadata, reference_to, reservation_labels
from gpudev.domain.names import NodeName, ReservationId
from gpudev.domain.server import HomeVolume, ServerSpec
from gpudev.domain.volume import SnapshotSpec, VolumeSpec

SNAPSHOT_API = "snapshot.storage.k8s.io"
COMPONENT_HOME = "home"
DRIVER = "ebs.csi.aws.com"
_FILE_SYSTEM = "ext4"
_ONE_NODE = ["ReadWriteOnce"]


def make_claim(spec: VolumeSpec, config: ClaimConfig, node: NodeName | None) -> Json:
    """`node` is where its volume is to be made at once; None: where its first pod is."""
    annotations = {**annotations_for(spec.tags), TOKEN: spec.token}
    source = spec.source_snapshot_id
    if source:
        annotations[SOURCE] = source
    if node:
        annotations[SELECTED_NODE] = node
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name_from("volume", spec.token),
            "namespace": config.namespace,
            "labels": labels_for(VOLUME, spec.tags.disk_id),
            "annotations": annotations,
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": config.storage_class,
            "resources": {"requests": {"storage": size_quantity(spec.size_gb)}},
            **({"dataSource": _snapshot_reference(source)} if source else {}),
        },
    }


def make_snapshot(spec: SnapshotSpec, config: ClaimConfig, zone: str) -> Json:
    return {
        "apiVersion": f"{SNAPSHOT_API}/v1",
        "kind": "VolumeSnapshot",
        "metadata": {
            "name": name_from("snapshot", spec.token),
            "namespace": config.namespace,
            "labels": {**labels_for(SNAPSHOT, spec.tags.disk_id), OF_VOLUME: spec.volume_id},
            "annotations": {**annotations_for(spec.tags), TOKEN: spec.token, ZONE: zone},
        },
        "spec": {
            "volumeSnapshotClassName": config.snapshot_class,
            "source": {"persistentVolumeClaimName": spec.volume_id},
        },
    }


def size_quantity(size_gb: int) -> str:
    return f"{size_gb}Gi"


def _snapshot_reference(name: str) -> Json:
    return {"apiGroup": SNAPSHOT_API, "kind": "VolumeSnapshot", "name": name}


def claim_name(spec: ServerSpec, home: HomeVolume) -> str:
    """With the volume in it: a disk that moves zone has another, and a bound claim never changes."""
    return f"{spec.name}-{home.volume_id}"


def volume_name(reservation_id: ReservationId, home: HomeVolume) -> str:
    """PersistentVolumes have no namespace, so it takes the whole id."""
    return f"gpu-dev-{reservation_id}-{home.volume_id}"


def make_home_volume(spec: ServerSpec, home: HomeVolume, config: KubernetesConfig) -> Json:
    labels = reservation_labels(spec.reservation_id, COMPONENT_HOME)
    metadata = make_metadata(volume_name(spec.reservation_id, home), config.namespace, labels)
    del metadata["namespace"]
    metadata["labels"][NAMESPACE] = config.namespace
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": metadata,
        "spec": {
            "capacity": {"storage": size_quantity(home.size_gb)},
            "accessModes": _ONE_NODE,
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": config.namespace,
                "name": claim_name(spec, home),
            },
            "csi": {"driver": DRIVER, "volumeHandle": home.volume_id, "fsType": _FILE_SYSTEM},
            **_only_in(home.zone, config.zone_label),
        },
    }


def make_home_claim(spec: ServerSpec, home: HomeVolume, config: KubernetesConfig, service: Json) -> Json:
    labels = reservation_labels(spec.reservation_id, COMPONENT_HOME)
    metadata = make_metadata(claim_name(spec, home), config.namespace, labels)
    metadata["ownerReferences"] = [reference_to(service)]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": {
            "accessModes": _ONE_NODE,
            # No class: nothing is made for it, it waits for the volume that it names.
            "storageClassName": "",
            "volumeName": volume_name(spec.reservation_id, home),
            "resources": {"requests": {"storage": size_quantity(home.size_gb)}},
        },
    }


def _only_in(zone: str, zone_label: str) -> Json:
    if not zone:
        return {}
    expression = {"key": zone_label, "operator": "In", "values": [zone]}
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}
