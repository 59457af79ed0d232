"""Objects of the Kubernetes API: the collections that we use, our labels and annotations, and owners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpudev.domain.names import ReservationId

_CORE = "api/v1"
_SNAPSHOTS = "apis/snapshot.storage.k8s.io/v1"
Json = dict[str, Any]
"""An object of the Kubernetes API as it is sent and received."""

FIELD_MANAGER = "gpu-dev"
MANAGED_BY = "app.kubernetes.io/managed-by"
COMPONENT = "app.kubernetes.io/component"

RESERVATION = "gpu-dev/reservation"
"""The full id of the reservation that an object belongs to: only such an object is ever adopted."""
PORT_SLOT = "gpu-dev/port-slot"
"""On a pod and on the Service that leads to it."""
SLOTS = "gpu-dev/slots"
"""How much of its node a pod on a CPU node takes."""
NODE = "gpu-dev/node"
RANK = "gpu-dev/rank"
INCARNATION = "gpu-dev/incarnation"
"""On every pod of a gang: the uid of the whole."""
HOST_KEY = "gpu-dev/host-key"
HOME = "gpu-dev/home"
"""On a pod: the claim that is its home."""
NAMESPACE = "gpu-dev/namespace"
"""On what has no namespace of its own: whose it is."""

GPU_TYPE = "gpu-type"
"""On nodes, by the operator."""
PROFILING = "gpu.monitoring/profiling-dedicated"
SIMULATED = "gpu-dev/simulated"
"""On nodes, by the operator, if there are no GPUs behind the count: nothing about them is measured."""

DEV_SERVER = "dev-server"
PORT_SLOT_COMPONENT = "port-slot"


@dataclass(frozen=True, slots=True)
class Kind:
    """One collection of the API; `namespace` is empty where its objects have none, or all are meant."""

    group: str
    plural: str
    namespace: str = ""

    @property
    def path(self) -> str:
        inside = f"/namespaces/{self.namespace}" if self.namespace else ""
        return f"/{self.group}{inside}/{self.plural}"


NODES = Kind(_CORE, "nodes")
NAMESPACES = Kind(_CORE, "namespaces")
ALL_PODS = Kind(_CORE, "pods")
"""Everybody's: a GPU that another team's pod has is not free."""
PERSISTENT_VOLUMES = Kind(_CORE, "persistentvolumes")
STORAGE_CLASSES = Kind("apis/storage.k8s.io/v1", "storageclasses")
SNAPSHOT_CLASSES = Kind(_SNAPSHOTS, "volumesnapshotclasses")
SNAPSHOT_CONTENTS = Kind(_SNAPSHOTS, "volumesnapshotcontents")


@dataclass(frozen=True, slots=True)
class OwnKinds:
    """Those of the namespace that is ours."""

    namespace: str

    @property
    def pods(self) -> Kind:
        return Kind(_CORE, "pods", self.namespace)

    @property
    def services(self) -> Kind:
        return Kind(_CORE, "services", self.namespace)

    @property
    def secrets(self) -> Kind:
        return Kind(_CORE, "secrets", self.namespace)

    @property
    def config_maps(self) -> Kind:
        return Kind(_CORE, "configmaps", self.namespace)

    @property
    def events(self) -> Kind:
        return Kind(_CORE, "events", self.namespace)

    @property
    def network_policies(self) -> Kind:
        return Kind("apis/networking.k8s.io/v1", "networkpolicies", self.namespace)

    @property
    def claims(self) -> Kind:
        return Kind(_CORE, "persistentvolumeclaims", self.namespace)

    @property
    def volume_snapshots(self) -> Kind:
        return Kind(_SNAPSHOTS, "volumesnapshots", self.namespace)


def labels_of(item: Json) -> Mapping[str, str]:
    return item["metadata"].get("labels") or {}


def annotations_of(item: Json) -> Mapping[str, str]:
    return item["metadata"].get("annotations") or {}


def name_of(item: Json) -> str:
    return str(item["metadata"]["name"])


def uid_of(item: Json) -> str:
    return str(item["metadata"]["uid"])


def owner_of(item: Json) -> ReservationId | None:
    """The reservation that an object belongs to; None if it is not ours at all."""
    labels = labels_of(item)
    owner = labels.get(RESERVATION)
    return ReservationId(owner) if owner and labels.get(MANAGED_BY) == FIELD_MANAGER else None


def is_port_slot(item: Json) -> bool:
    labels = labels_of(item)
    return labels.get(COMPONENT) == PORT_SLOT_COMPONENT and labels.get(MANAGED_BY) == FIELD_MANAGER
