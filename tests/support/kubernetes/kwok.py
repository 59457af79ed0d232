"""Simulated nodes: kwok says that they and their pods run, and one listener answers for all those pods."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from tests.support.kubernetes import banner
from tests.support.kubernetes.namespaces import Namespaces
from tests.support.kubernetes.network import Bridge, add_route
from tests.support.kubernetes.processes import Process
from tests.support.kubernetes.programs import get_program

ANNOTATION = "kwok.x-k8s.io/node"
SELECTOR = "type=kwok"
_BANNER_PORT = 22
_PODS_A_NODE = 256
_CONFIG = Path(__file__).with_name("kwok.yaml")


@dataclass(frozen=True, slots=True)
class SimulatedNodes:
    bridge: Bridge
    node_address: IPv4Address
    """Of a real node: a NodePort answers there for simulated pods, too."""
    kubeconfig: Path
    processes: Path

    @property
    def process(self) -> Process:
        return Process("kwok", self.processes)

    @property
    def namespaces(self) -> Namespaces:
        return Namespaces("simulated", self.processes)

    def start(self) -> None:
        """Start kwok and what answers for its pods, if they do not run."""
        if self.process.find() is None:
            self._start_listener()
            self._start_kwok()

    def stop(self) -> None:
        self.process.stop()
        self.namespaces.close()
        self.bridge.unplug(self.bridge.addresses.simulated_host)

    def _start_kwok(self) -> None:
        addresses = self.bridge.addresses
        self.process.start(
            [
                get_program("kwok"),
                f"--kubeconfig={self.kubeconfig}",
                f"--config={_CONFIG}",
                "--manage-all-nodes=false",
                f"--manage-nodes-with-annotation-selector={ANNOTATION}=fake",
                f"--cidr={addresses.simulated_pods}",
                f"--node-ip={self.node_address}",
                f"--server-address={addresses.loopback}:10247",
                "--node-lease-duration-seconds=40",
            ],
            # Its settings would else come from the home of whoever started it.
            environment={"KWOK_WORKDIR": str(self.processes / "kwok")},
        )

    def _start_listener(self) -> None:
        addresses = self.bridge.addresses
        self.namespaces.open()
        self.bridge.plug(self.namespaces.init.get_pid(), addresses.simulated_host, self.namespaces)
        add_route(addresses.simulated_pods, addresses.simulated_host)
        chain = "{ type nat hook prerouting priority dstnat; }"
        self.namespaces.run("nft", "add table ip simulated")
        self.namespaces.run("nft", f"add chain ip simulated pods {chain}")
        to_pods = f"ip daddr {addresses.simulated_pods} meta l4proto tcp"
        self.namespaces.run("nft", f"add rule ip simulated pods {to_pods} redirect to :{_BANNER_PORT}")
        listener = Process("simulated-pods", self.processes)
        listener.start([sys.executable, str(banner.__file__), str(_BANNER_PORT)], inside=self.namespaces)


def simulated_node(gpu_type: str, number: int, gpus: int) -> dict[str, Any]:
    """The manifest of one simulated node."""
    name = f"{gpu_type}-{number:04d}"
    room = {"cpu": "256", "memory": "2Ti", "pods": str(_PODS_A_NODE), "nvidia.com/gpu": str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {ANNOTATION: "fake"},
            "labels": {"gpu-type": gpu_type, "kubernetes.io/hostname": name, "type": "kwok"},
        },
        "status": {"allocatable": room, "capacity": room},
    }
