"""A claim that is a disk, and a snapshot of it."""

from __future__ import annotations

from gpudev.adapters.kubernetes.disks.config import ClaimConfig
from gpudev.adapters.kubernetes.disks.observe import SELECTED_NODE
from gpudev.adapters.kubernetes.disks.tags import (
    OF_VOLUME,
    SNAPSHOT,
    SOURCE,
    TOKEN,
    VOLUME,
    ZONE,
    annotations_for,
    labels_for,
    name_from,
)
from gpudev.adapters.kubernetes.labels import Json
from gpudev.domain.names import NodeName
from gpudev.domain.volume import SnapshotSpec, VolumeSpec

SNAPSHOT_API = "snapshot.storage.k8s.io"


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
