"""What an operator decides about the cluster and about disks that are claims."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gpudev.domain.catalogue import Catalogue

ZONE_LABEL = "topology.kubernetes.io/zone"


@dataclass(frozen=True, slots=True)
class ClaimConfig:
    namespace: str
    storage_class: str
    """Volumes are claims of it. Its reclaim policy has to be Retain."""
    snapshot_class: str
    """Snapshots are of it. Its deletion policy has to be Retain."""
    zone_label: str = ZONE_LABEL
    """The label of nodes that volumes are tied to."""


class Reach(StrEnum):
    """How the controllers find out that a dev server answers on SSH."""

    AUTO = "auto"
    """By its banner at the address that users get; if that cannot be reached, at the pod's own."""
    NODE = "node"
    """By its banner at the address that users get, and no other."""
    POD = "pod"
    """By its banner at the pod's own address: the node ports are closed to the controllers."""
    PROBE = "probe"
    """By the kubelet's word, from a readiness probe: the controllers can reach neither."""


class Homes(StrEnum):
    """What the volume of a disk is to a pod."""

    CLAIMS = "claims"
    """A claim of that name."""
    EBS = "ebs"
    """A volume of EBS, for which a claim is made for each reservation."""


class UserNamespaces(StrEnum):
    """Whether root in a dev server is an ordinary user on its node: `hostUsers: false`."""

    AUTO = "auto"
    """Where it is known to work: without GPUs, on a node that supports it, not with a claim as home."""
    ALWAYS = "always"
    NEVER = "never"


class PullPolicy(StrEnum):
    IF_NOT_PRESENT = "IfNotPresent"
    ALWAYS = "Always"
    NEVER = "Never"


@dataclass(frozen=True, slots=True)
class KubernetesConfig:
    catalogue: Catalogue
    """The types that nodes may have, by the label `gpu-type`."""
    image: str
    """The image of dev servers whose type or user has no other."""
    namespace: str = "gpu-dev"
    kubeconfig: str = ""
    """Path of a kubeconfig; empty: the service account of this pod, `$KUBECONFIG`, or the user's own."""
    pull_policy: PullPolicy = PullPolicy.IF_NOT_PRESENT
    pull_secrets: tuple[str, ...] = ()
    reach: Reach = Reach.AUTO
    port_slots: int = 8
    """How many NodePort Services wait for a dev server."""
    workspace_gib: int = 100
    home_gib: int = 50
    """The most that a home without a disk may hold."""
    storage_percent: int = 80
    """The part of a node's local disk that its dev servers share; the rest is for images and logs."""
    user_namespaces: UserNamespaces = UserNamespaces.AUTO
    closed_networks: tuple[str, ...] = ()
    """Networks that dev servers may not reach, besides the cloud's metadata service."""
    zone_label: str = ZONE_LABEL
    """The label of nodes that volumes are tied to."""
    homes: Homes = Homes.CLAIMS
