"""The whole cluster: brought up, taken down, and what a test may do to it meanwhile.

A cluster is known by name. All that it has (processes, addresses, files) follows from the name and from
records in its folder, so that it can be taken down by another process than the one that brought it up.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from tests.support.kubernetes.access import GPU, Access, is_ready
from tests.support.kubernetes.control_plane import ControlPlane
from tests.support.kubernetes.debian import install_missing_packages
from tests.support.kubernetes.images import build_images
from tests.support.kubernetes.kwok import SELECTOR, SimulatedNodes, simulated_node
from tests.support.kubernetes.network import Addresses, Bridge
from tests.support.kubernetes.network_policies import NetworkPolicies
from tests.support.kubernetes.node import Node
from tests.support.kubernetes.processes import ClusterFailed, kill, list_marked, list_processes
from tests.support.kubernetes.programs import build_programs, get_program
from tests.support.kubernetes.progress import step
from tests.support.kubernetes.storage import Storage

NETWORKS = {
    "dev": IPv4Network("10.246.0.0/16"),
    "test": IPv4Network("10.247.0.0/16"),
    "temp": IPv4Network("10.248.0.0/16"),
    "disk": IPv4Network("10.249.0.0/16"),
}
"""The names that a cluster may have. A developer keeps `dev`, a test run makes `test`, and its test of how a
cluster comes and goes makes `temp`. `disk` is a second one to keep."""

GPU_TYPES = {"node-a": "h100", "node-b": "a100"}
"""The real nodes."""

GPUS_A_NODE = 100
_READY_SECONDS = 120.0
_NODES_AT_ONCE = 64


def prepare() -> None:
    """Install, compile and make what is not there yet: minutes the first time, nothing afterwards."""
    install_missing_packages()
    build_programs()
    build_images()


@dataclass(frozen=True)
class Cluster:
    """One cluster on this machine; it may run or not."""

    name: str

    @property
    def folder(self) -> Path:
        """In a fixed place, as the bridge is: whoever takes the cluster down must find both."""
        return Path("/var/tmp", f"gpu-dev-kubernetes-{self.name}")  # noqa: S108 - of root alone, see `up`

    @property
    def addresses(self) -> Addresses:
        return Addresses(NETWORKS[self.name])

    @property
    def bridge(self) -> Bridge:
        return Bridge(f"gpudev-{self.name}", self.addresses)

    @property
    def kubeconfig(self) -> Path:
        """Of somebody who may do everything."""
        return self.control_plane.kubeconfigs / "admin"

    @cached_property
    def access(self) -> Access:
        return Access(self.kubeconfig, get_program("kubectl"), self.control_plane.kubeconfigs)

    @cached_property
    def control_plane(self) -> ControlPlane:
        return ControlPlane(self.folder, self.addresses, self._processes, tuple(GPU_TYPES))

    @cached_property
    def nodes(self) -> dict[str, Node]:
        """The real ones, by name."""
        return {
            name: Node(
                name,
                index,
                gpu_type,
                self.bridge,
                self.folder / name,
                self._processes,
                self.control_plane.kubeconfigs,
                f"gpu-dev-{self.name}-{name}",
            )
            for index, (name, gpu_type) in enumerate(GPU_TYPES.items())
        }

    @cached_property
    def simulated_nodes(self) -> SimulatedNodes:
        first = next(iter(self.nodes.values()))
        kubeconfig = self.control_plane.kubeconfigs / "kwok"
        return SimulatedNodes(self.bridge, first.address, kubeconfig, self._processes)

    @cached_property
    def storage(self) -> Storage:
        """For disks; it is started by those who need it."""
        kubeconfig = self.control_plane.kubeconfigs / "storage"
        return Storage(self.folder / "storage", kubeconfig, self._processes)

    @cached_property
    def network_policies(self) -> NetworkPolicies:
        """What enforces them; it is started by those who need it."""
        return NetworkPolicies(tuple(node.enforcer for node in self.nodes.values()))

    def is_up(self) -> bool:
        """Whether it was brought up whole, and runs; single parts may be stopped."""
        return self._whole.exists() and self.control_plane.etcd.process.find() is not None

    def up(self) -> None:
        """Make everything, and wait until both nodes are ready."""
        if os.geteuid() != 0:
            raise ClusterFailed("The test cluster needs root: it makes namespaces, links and mounts.")
        prepare()
        self.down()
        with step(f"Starting cluster {self.name}"):
            self._make_folder()
            self.bridge.add()
            with ThreadPoolExecutor() as pool:
                waits = [pool.submit(self._start_containers, node) for node in self.nodes.values()]
                self.control_plane.start()
                for wait in waits:
                    wait.result()
            for node in self.nodes.values():
                self._join(node)
            for node in self.nodes.values():
                self._wait_until_ready(node)
            self.control_plane.dns.wait()
            self.access.wait_for_account("default")
            self._whole.touch()

    def down(self) -> None:
        """End and remove everything of this cluster, also what an interrupted run has left."""
        for process in list_processes(self._processes):
            process.stop(signal.SIGKILL)
        for identity in list_marked(self._processes):
            kill(identity)
        for node in self.nodes.values():
            node.stop()
        self.bridge.remove()
        self._remove_folder()

    def start_kubelet(self, node: str) -> None:
        """Start a stopped kubelet again, and wait until the node is ready."""
        self.nodes[node].start_kubelet()
        self._wait_until_ready(self.nodes[node])

    def stop_node(self, node: str) -> None:
        """As if its power were cut: kubelet, containers and network at once."""
        self.nodes[node].stop()

    def start_node(self, node: str) -> None:
        """Start a stopped node again, with its disk as it was."""
        self._start_containers(self.nodes[node])
        self._join(self.nodes[node])
        self._wait_until_ready(self.nodes[node])

    def add_simulated_nodes(self, gpu_type: str, *, count: int, gpus: int) -> tuple[str, ...]:
        """Nodes that only seem to run pods, whose addresses answer with an SSH banner; their names."""
        self.simulated_nodes.start()
        before = len(self._list_simulated())
        nodes = [simulated_node(gpu_type, number, gpus) for number in range(before, before + count)]
        with ThreadPoolExecutor() as pool:
            # One `kubectl` would create them one after the other.
            parts = (nodes[start : start + _NODES_AT_ONCE] for start in range(0, count, _NODES_AT_ONCE))
            list(pool.map(self.access.create, parts))
        self.simulated_nodes.process.wait_until(self._are_simulated_ready, "keeping up", _READY_SECONDS)
        return tuple(node["metadata"]["name"] for node in nodes)

    def remove_simulated_nodes(self) -> None:
        """All of them, and kwok."""
        self.access.kubectl("delete", "nodes", f"--selector={SELECTOR}", "--wait=true")
        self.simulated_nodes.stop()

    @property
    def _processes(self) -> Path:
        return self.folder / "processes"

    @property
    def _whole(self) -> Path:
        return self.folder / "whole"

    def _make_folder(self) -> None:
        """In memory: thousands of small files are written, and forgotten at once when it is unmounted."""
        self.folder.mkdir(mode=0o700)
        options = ["-o", "mode=0700", "-t", "tmpfs"]
        subprocess.run(["mount", *options, f"gpu-dev-{self.name}", str(self.folder)], check=True)

    def _remove_folder(self) -> None:
        while self.folder.is_mount():
            # Lazily: somebody's shell may be in there.
            subprocess.run(["umount", "--lazy", str(self.folder)], check=True)
        if self.folder.exists():
            shutil.rmtree(self.folder)

    def _start_containers(self, node: Node) -> None:
        node.start_containers(build_images())

    def _join(self, node: Node) -> None:
        for other in self.nodes.values():
            if other != node:
                node.route_to(other)
        node.start_kubelet()
        node.kube_proxy.start()

    def _wait_until_ready(self, node: Node) -> None:
        self.access.wait(f"node/{node.name}", "create", seconds=_READY_SECONDS)
        if GPU not in self.access.get("node", node.name)["status"]["capacity"]:
            self.access.set_gpus(node.name, GPUS_A_NODE)
        node.kubelet.wait()
        self.access.wait(f"node/{node.name}", "condition=Ready", seconds=_READY_SECONDS)

    def _list_simulated(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.access.get("nodes", f"--selector={SELECTOR}")["items"]
        return found

    def _are_simulated_ready(self) -> bool:
        return all(is_ready(node) for node in self._list_simulated())


def find_cluster(kubeconfig: Path) -> Cluster | None:
    """The cluster of this machine that the kubeconfig belongs to, if it is one of ours."""
    clusters = (Cluster(name) for name in NETWORKS)
    return next((cluster for cluster in clusters if cluster.kubeconfig == kubeconfig.absolute()), None)
