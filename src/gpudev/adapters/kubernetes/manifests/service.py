"""The Service by which a dev server is reached from outside: one port on every node.

kube-proxy takes up to a second or two to open a port, so a few Services are made beforehand, each waiting for
a pod with its label. One leads to one dev server in its life and goes with it.
"""

from __future__ import annotations

from gpudev.adapters.kubernetes.labels import (
    COMPONENT,
    FIELD_MANAGER,
    MANAGED_BY,
    PORT_SLOT,
    PORT_SLOT_COMPONENT,
    RESERVATION,
    Json,
)
from gpudev.adapters.kubernetes.manifests.gang import gang_name
from gpudev.adapters.kubernetes.manifests.metadata import make_metadata, reference_to, reservation_labels
from gpudev.adapters.kubernetes.manifests.pod import SSH_PORT
from gpudev.domain.server import ServerSpec


def make_port_slot(name: str, namespace: str) -> Json:
    return _make_service(make_metadata(name, namespace, {COMPONENT: PORT_SLOT_COMPONENT}))


def make_own_service(spec: ServerSpec, namespace: str) -> Json:
    labels = reservation_labels(spec.reservation_id, "service")
    return _make_service(make_metadata(spec.name, namespace, labels))


def make_member_service(spec: ServerSpec, rank: int, namespace: str, gang: Json) -> Json:
    """Of a member that no port slot waits for; it goes with the gang."""
    labels = reservation_labels(spec.reservation_id, "service")
    metadata = make_metadata(spec.member_names[rank], namespace, labels)
    metadata["ownerReferences"] = [reference_to(gang)]
    return _make_service(metadata)


def make_gang_service(spec: ServerSpec, namespace: str) -> Json:
    """No address of its own: it gives each member a name that all of them can resolve."""
    labels = reservation_labels(spec.reservation_id, "gang")
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": make_metadata(gang_name(spec), namespace, labels),
        "spec": {
            "clusterIP": "None",
            "selector": {MANAGED_BY: FIELD_MANAGER, RESERVATION: spec.reservation_id},
            "ports": [{"name": "ssh", "port": SSH_PORT, "targetPort": SSH_PORT, "protocol": "TCP"}],
            # Members find each other while they start.
            "publishNotReadyAddresses": True,
        },
    }


def _make_service(metadata: Json) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {
            "type": "NodePort",
            "selector": {PORT_SLOT: metadata["name"]},
            "ports": [{"name": "ssh", "port": SSH_PORT, "targetPort": SSH_PORT, "protocol": "TCP"}],
            # Whether the server answers is what we find out by this very port.
            "publishNotReadyAddresses": True,
        },
    }
