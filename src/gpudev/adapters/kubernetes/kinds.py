"""The collections of the API that we use."""

from __future__ import annotations

from dataclasses import dataclass

from gpudev.adapters.kubernetes.client import Kind

_CORE = "api/v1"
_SNAPSHOTS = "apis/snapshot.storage.k8s.io/v1"

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
