"""The NetworkPolicies of the namespace: SSH in, the world out, and nothing of ours in between.

What comes in and what goes out have a policy each. By the words of Kubernetes one for both means the same,
but there are enforcers (kube-router 1.5) that let a packet through if either half of a policy fits it. One
policy that opens the world to dev servers would there open dev servers to each other.

A gang has one more, which opens its members to each other; its halves are the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_network

from gpudev.adapters.kubernetes.config import KubernetesConfig
from gpudev.adapters.kubernetes.labels import (
    COMPONENT,
    DEV_SERVER,
    FIELD_MANAGER,
    MANAGED_BY,
    RESERVATION,
    Json,
)
from gpudev.adapters.kubernetes.manifests.gang import gang_name
from gpudev.adapters.kubernetes.manifests.metadata import make_metadata, reference_to, reservation_labels
from gpudev.adapters.kubernetes.manifests.pod import SSH_PORT
from gpudev.domain.server import ServerSpec

METADATA_SERVICES = ("169.254.169.254/32", "169.254.170.0/24", "fd00:ec2::254/128")
_ANYWHERE = {4: "0.0.0.0/0", 6: "::/0"}
_DNS_PORT = 53


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
