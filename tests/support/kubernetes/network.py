"""The network of a cluster: which address is whose, and the bridge that the nodes hang on.

Everything is inside one private range, so that two clusters on one machine do not meet. This machine is on
the bridge, too, and has routes to the pods: a test can dial any pod, and nothing goes further out.
"""

from __future__ import annotations

import socket
import subprocess
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from tests.support.kubernetes.processes import Surroundings

NODE_PORTS = "20000-39999"


@dataclass(frozen=True, slots=True)
class Addresses:
    """The plan of addresses of one cluster."""

    cluster: IPv4Network
    """A /16."""

    @property
    def links(self) -> IPv4Network:
        """This machine, the nodes and what answers for simulated pods."""
        return self._part(0, 24)

    @property
    def host(self) -> IPv4Address:
        """This machine, and on it the API server and the DNS."""
        return self.links[1]

    @property
    def simulated_host(self) -> IPv4Address:
        """What answers for every simulated pod."""
        return self.links[100]

    @property
    def services(self) -> IPv4Network:
        return self._part(64, 18)

    @property
    def simulated_pods(self) -> IPv4Network:
        return self._part(128, 17)

    @property
    def loopback(self) -> IPv4Address:
        """For what only this machine may reach: every cluster has its own, so the usual ports are free."""
        return IPv4Address("127.0.0.1") + (int(self.cluster.network_address) & 0x00FF0000)

    def node(self, index: int) -> IPv4Address:
        return self.links[11 + index]

    def pods(self, index: int) -> IPv4Network:
        """The pods of one node."""
        return self._part(1 + index, 24)

    def _part(self, third: int, prefix: int) -> IPv4Network:
        return IPv4Network((int(self.cluster.network_address) + (third << 8), prefix))


@dataclass(frozen=True, slots=True)
class Bridge:
    name: str
    addresses: Addresses

    @property
    def port_prefix(self) -> str:
        """Of the names of the links to the nodes, which may have 15 characters."""
        return f"{self.name}-"

    def add(self) -> None:
        host = f"{self.addresses.host}/{self.addresses.links.prefixlen}"
        ip("link", "add", self.name, "type", "bridge")
        ip("address", "add", host, "dev", self.name)
        ip("link", "set", self.name, "up")

    def remove(self) -> None:
        """With its routes and the links to the nodes."""
        for _, name in socket.if_nameindex():
            if name.startswith(self.port_prefix):
                _remove_link(name)
        if self.exists():
            ip("link", "delete", self.name)

    def exists(self) -> bool:
        shown = subprocess.run(["ip", "link", "show", self.name], capture_output=True, check=False)
        return shown.returncode == 0

    def plug(self, pid: int, address: IPv4Address, inside: Surroundings) -> None:
        """Give the network namespace of this process an `eth0` on the bridge."""
        outer = self._port(address)
        ip("link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        ip("link", "set", outer, "master", self.name, "up")
        ip("link", "set", "lo", "up", inside=inside)
        ip("address", "add", f"{address}/{self.addresses.links.prefixlen}", "dev", "eth0", inside=inside)
        ip("link", "set", "eth0", "up", inside=inside)
        ip("route", "add", "default", "via", str(self.addresses.host), inside=inside)

    def unplug(self, address: IPv4Address) -> None:
        _remove_link(self._port(address))

    def _port(self, address: IPv4Address) -> str:
        return f"{self.port_prefix}{address.packed[3]}"


def _remove_link(name: str) -> None:
    """At once, if it is still there: the kernel removes those of an ended namespace some time later."""
    subprocess.run(["ip", "link", "delete", name], capture_output=True, check=False)


def add_route(to: IPv4Network, via: IPv4Address, inside: Surroundings | None = None) -> None:
    ip("route", "replace", str(to), "via", str(via), inside=inside)


def ip(*arguments: str, inside: Surroundings | None = None) -> None:
    command = ["ip", *arguments]
    subprocess.run(inside.wrap(command) if inside else command, check=True)
