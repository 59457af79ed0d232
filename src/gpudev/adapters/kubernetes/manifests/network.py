"""The Services that lead to dev servers, and the NetworkPolicies around them.

A Service opens one port on every node. kube-proxy takes up to two seconds to open it, so a few Services are
created beforehand, each waiting for a pod with its label. A Service leads to one dev server and is deleted
with it.

The policies of the namespace allow SSH in and the internet out. Each direction has a policy of its own. By
the definition of Kubernetes one policy for both means the same, but some enforcers (kube-router 1.5) accept
a packet if either half of a policy matches it: a policy that opens the internet to dev servers would there
open dev servers to each other. A gang has one more policy, which opens its members to each other; its halves
are the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_network

from gpudev.adapters.kubernetes.api_objects import (
    COMPONENT,
    DEV_SERVER,
    FIELD_MANAGER,
    MANAGED_BY,
    PORT_SLOT,
    PORT_SLOT_COMPONENT,
    RESERVATION,
    Json,
)
from gpudev.adapters.kubernetes.config import KubernetesConfig
from gpudev.adapters.kubernetes.manifests.metadata import (
    gang_name,
    make_metadata,
    reference_to,
    reservation_labels,
)
from gpudev.adapters.kubernetes.manifests.pod import SSH_PORT
from gpudev.domain.server import ServerSpec

METADATA_SERVICES = ("169.254.169.254/32", "169.254.170.0/24", "fd00:ec2::254/128")
_ANYWHERE = {4: "0.0.0.0/0", 6: "::/0"}
_DNS_PORT = 53


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


def make_ingress_policy(config: KubernetesConfig) -> Json:
    """Everybody may come to port 22, the controllers and other dev servers included, and to no other."""
    rule = {"ports": [{"port": SSH_PORT, "protocol": "TCP"}]}
    return _make_policy("gpu-dev-servers", config, {"policyTypes": ["Ingress"], "ingress": [rule]})


def make_egress_policy(config: KubernetesConfig) -> Json:
    """Dev servers may go everywhere but to the networks that are closed; those still answer for names."""
    closed = [ip_network(text) for text in (*METADATA_SERVICES, *config.closed_networks)]
    rules = [
        {"to": [_anywhere_but(closed, version) for version in (4, 6)]},
        {"ports": [{"port": _DNS_PORT, "protocol": protocol} for protocol in ("UDP", "TCP")]},
    ]
    return _make_policy("gpu-dev-servers-out", config, {"policyTypes": ["Egress"], "egress": rules})


def make_gang_policy(spec: ServerSpec, namespace: str, gang: Json) -> Json:
    """The members of a gang may do everything with each other; it goes with the gang."""
    labels = reservation_labels(spec.reservation_id, "gang")
    metadata = make_metadata(gang_name(spec), namespace, labels)
    metadata["ownerReferences"] = [reference_to(gang)]
    members = {"matchLabels": {MANAGED_BY: FIELD_MANAGER, RESERVATION: spec.reservation_id}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata,
        "spec": {
            "podSelector": members,
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [{"podSelector": members}]}],
            "egress": [{"to": [{"podSelector": members}]}],
        },
    }


def _make_policy(name: str, config: KubernetesConfig, rules: Json) -> Json:
    """Of all dev servers."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": make_metadata(name, config.namespace, {}),
        "spec": {
            "podSelector": {"matchLabels": {MANAGED_BY: FIELD_MANAGER, COMPONENT: DEV_SERVER}},
            **rules,
        },
    }


def _anywhere_but(closed: Iterable[IPv4Network | IPv6Network], version: int) -> Json:
    kept_out = [str(network) for network in closed if network.version == version]
    return {"ipBlock": {"cidr": _ANYWHERE[version], "except": kept_out}}
