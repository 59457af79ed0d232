"""One real node: namespaces of its own, and in them containerd, a kubelet and a kube-proxy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from tests.support.kubernetes.cgroups import make_cgroups, remove_cgroups
from tests.support.kubernetes.containerd import Containerd
from tests.support.kubernetes.kube_proxy import KubeProxy
from tests.support.kubernetes.kubelet import KERNEL_SETTINGS, Kubelet
from tests.support.kubernetes.namespaces import Namespaces
from tests.support.kubernetes.network import Bridge, add_route
from tests.support.kubernetes.network_policies import IDENTITY, Enforcer
from tests.support.kubernetes.processes import Process

# What the node's programs keep in fixed places, each in a folder of the node's own.
_OWN_FOLDERS = ("/var/lib", "/var/log")


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    index: int
    gpu_type: str
    bridge: Bridge
    folder: Path
    processes: Path
    kubeconfigs: Path
    cgroup: str

    @property
    def address(self) -> IPv4Address:
        return self.bridge.addresses.node(self.index)

    @property
    def namespaces(self) -> Namespaces:
        return Namespaces(self.name, self.processes)

    @property
    def containerd(self) -> Containerd:
        pods = self.bridge.addresses.pods(self.index)
        return Containerd(self.folder, pods, self.namespaces, self._process("containerd"))

    @property
    def kubelet(self) -> Kubelet:
        return Kubelet(
            self.name,
            self.address,
            self.bridge.addresses.host,
            self.cgroup,
            self.folder,
            self.kubeconfigs / self.name,
            self.namespaces,
            self._process("kubelet"),
        )

    @property
    def kube_proxy(self) -> KubeProxy:
        return KubeProxy(
            self.name,
            self.address,
            self.bridge.addresses.pods(self.index),
            self.kubeconfigs / "kube-proxy",
            self.namespaces,
            self._process("kube-proxy"),
        )

    @property
    def enforcer(self) -> Enforcer:
        """Of NetworkPolicies; it is started by those who need it."""
        return Enforcer(
            self.name,
            self.bridge.addresses.services,
            self.kubeconfigs / IDENTITY,
            self.namespaces,
            self._process("network-policies"),
        )

    def start_containers(self, archives: Sequence[Path]) -> None:
        """All that needs no API server: the namespaces, the network, containerd and its images."""
        make_cgroups(self.cgroup)
        self.namespaces.open()
        self._mount()
        self._connect()
        self.containerd.start()
        for archive in archives:
            self.containerd.import_image(archive)

    def route_to(self, other: Node) -> None:
        """Make the pods of another node reachable from this one."""
        add_route(self.bridge.addresses.pods(other.index), other.address, self.namespaces)

    def start_kubelet(self) -> None:
        """Start it; the labels are those with which it registers the node."""
        self.kubelet.start({"gpu-type": self.gpu_type})

    def stop(self) -> None:
        """All of it at once, containers too."""
        self.namespaces.close()
        self.bridge.unplug(self.address)
        remove_cgroups(self.cgroup)

    def _mount(self) -> None:
        for place in _OWN_FOLDERS:
            own = self.folder / place.replace("/", "-").strip("-")
            own.mkdir(parents=True, exist_ok=True)
            self.namespaces.run("mount", "--bind", str(own), place)
        for name, value in KERNEL_SETTINGS.items():
            # The kubelet finds what it wants, and leaves the machine as it is.
            found = self.folder / "kernel" / name
            found.parent.mkdir(parents=True, exist_ok=True)
            found.write_text(f"{value}\n")
            self.namespaces.run("mount", "--bind", str(found), f"/proc/sys/{name}")

    def _connect(self) -> None:
        addresses = self.bridge.addresses
        self.bridge.plug(self.namespaces.init.get_pid(), self.address, self.namespaces)
        self.namespaces.run("sysctl", "--quiet", "net.ipv4.ip_forward=1")
        add_route(addresses.simulated_pods, addresses.simulated_host, self.namespaces)
        add_route(addresses.pods(self.index), self.address)

    def _process(self, program: str) -> Process:
        return Process(f"{self.name}-{program}", self.processes)
