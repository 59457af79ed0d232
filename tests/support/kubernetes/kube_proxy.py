"""The kube-proxy of one node: it makes services and NodePorts answer in the node's own packet filter."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from tests.support.kubernetes.namespaces import Namespaces
from tests.support.kubernetes.processes import Process
from tests.support.kubernetes.programs import get_program


@dataclass(frozen=True, slots=True)
class KubeProxy:
    node: str
    address: IPv4Address
    pods: IPv4Network
    kubeconfig: Path
    inside: Namespaces
    process: Process

    def start(self) -> None:
        self.process.start(
            [
                get_program("kube-proxy"),
                f"--kubeconfig={self.kubeconfig}",
                f"--hostname-override={self.node}",
                "--proxy-mode=nftables",
                f"--cluster-cidr={self.pods}",
                f"--nodeport-addresses={self.address}/32",
                # These belong to the whole machine.
                "--conntrack-max-per-core=0",
                "--conntrack-min=0",
                "--conntrack-tcp-timeout-established=0",
                "--conntrack-tcp-timeout-close-wait=0",
            ],
            inside=self.inside,
        )
