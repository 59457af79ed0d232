"""A volume of EBS as the home of one reservation: a PersistentVolume that names it, and a claim for that.

Both are of this reservation alone and go after it. Neither owns the bytes: the policy is Retain, and nobody
asks the driver to make or to delete a volume.
"""

from __future__ import annotations

from gpudev.adapters.kubernetes.config import KubernetesConfig
from gpudev.adapters.kubernetes.labels import NAMESPACE, Json
from gpudev.adapters.kubernetes.manifests.claim import size_quantity
from gpudev.adapters.kubernetes.manifests.metadata import make_metadata, reference_to, reservation_labels
from gpudev.domain.names import ReservationId
from gpudev.domain.server import HomeVolume, ServerSpec

COMPONENT_HOME = "home"
DRIVER = "ebs.csi.aws.com"
_FILE_SYSTEM = "ext4"
_ONE_NODE = ["ReadWriteOnce"]


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
