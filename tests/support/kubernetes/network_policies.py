"""What enforces NetworkPolicies, on every real node: started by the tests that need it, then stopped.

At every change of a pod it writes all its rules anew, with dozens of small programs, so it is not for tests
that make many pods or measure how soon they answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from tests.support.kubernetes.access import Access
from tests.support.kubernetes.namespaces import Namespaces
from tests.support.kubernetes.network import NODE_PORTS
from tests.support.kubernetes.processes import Process
from tests.support.kubernetes.programs import get_program

IDENTITY = "network-policies"
"""The user that asks the API server, and its role."""

_FIRST_RULES = "explicitly ACCEPT traffic that complies with network policies"


@dataclass(frozen=True, slots=True)
class Enforcer:
    """Of one node: packets from and to its pods pass the node's own packet filter."""

    node: str
    services: IPv4Network
    kubeconfig: Path
    inside: Namespaces
    process: Process

    def start(self) -> None:
        self.process.start(
            [
                get_program("network-policies"),
                f"--kubeconfig={self.kubeconfig}",
                f"--node={self.node}",
                f"--services={self.services}",
                f"--node-ports={NODE_PORTS}",
            ],
            inside=self.inside,
        )

    def wait(self) -> None:
        """Until the rules of what there is are written."""
        self.process.wait_until(self.has_rules, "enforcing")

    def stop(self) -> None:
        """It takes its rules back."""
        self.process.stop()

    def has_rules(self) -> bool:
        return _FIRST_RULES in self.inside.run("iptables-save", "--table", "filter")


@dataclass(frozen=True, slots=True)
class NetworkPolicies:
    enforcers: tuple[Enforcer, ...]

    @contextmanager
    def enforced(self, access: Access) -> Iterator[None]:
        """Meanwhile they are; before and afterwards they only lie in the cluster."""
        access.kubectl("apply", "--filename=-", stdin=json.dumps(_rights()))
        try:
            for enforcer in self.enforcers:
                enforcer.start()
            for enforcer in self.enforcers:
                enforcer.wait()
            yield
        finally:
            for enforcer in self.enforcers:
                enforcer.stop()


def _rights() -> dict[str, object]:
    """To read what the rules follow from, and nothing else."""
    group = "rbac.authorization.k8s.io"
    rules = [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["namespaces", "pods"], "verbs": ["list", "watch"]},
        {"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"], "verbs": ["list", "watch"]},
    ]
    about = {"apiVersion": f"{group}/v1", "metadata": {"name": IDENTITY}}
    binding = {
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": IDENTITY},
        "subjects": [{"apiGroup": group, "kind": "User", "name": IDENTITY}],
    }
    return {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            {**about, "kind": "ClusterRole", "rules": rules},
            {**about, "kind": "ClusterRoleBinding", **binding},
        ],
    }
