"""The control plane of a cluster, as processes of this machine: etcd, the API server and what asks it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.support.kubernetes.api_server import ApiServer, ControllerManager, Scheduler
from tests.support.kubernetes.certificates import write_certificates
from tests.support.kubernetes.dns import Dns
from tests.support.kubernetes.etcd import Etcd
from tests.support.kubernetes.kubeconfig import Identity, make_identity, write_kubeconfig, write_tokens
from tests.support.kubernetes.network import Addresses
from tests.support.kubernetes.network_policies import IDENTITY as NETWORK_POLICIES
from tests.support.kubernetes.processes import Process

_EVERYTHING = "system:masters"


@dataclass(frozen=True)
class ControlPlane:
    folder: Path
    addresses: Addresses
    processes: Path
    nodes: tuple[str, ...]
    """The names of the nodes that may join."""

    @property
    def kubeconfigs(self) -> Path:
        """One file an identity: `admin`, each node, and each program."""
        return self.folder / "kubeconfigs"

    @cached_property
    def etcd(self) -> Etcd:
        return Etcd(self.addresses.loopback, self.folder / "etcd", self._process("etcd"))

    @cached_property
    def api_server(self) -> ApiServer:
        """Also to be stopped and started by tests: `stop()`, `start()`."""
        return ApiServer(
            self.addresses, self.etcd.url, self._certificates, self._tokens, self._process("kube-apiserver")
        )

    @cached_property
    def scheduler(self) -> Scheduler:
        name = "kube-scheduler"
        return Scheduler(self.addresses.loopback, self.kubeconfigs / name, self._process(name))

    @cached_property
    def controller_manager(self) -> ControllerManager:
        name = "kube-controller-manager"
        return ControllerManager(
            self.addresses.loopback, self.kubeconfigs / name, self._certificates, self._process(name)
        )

    @cached_property
    def dns(self) -> Dns:
        return Dns(self.addresses, self.folder, self.kubeconfigs / "coredns", self._process("coredns"))

    def start(self) -> None:
        """Start everything, and wait until the API server answers."""
        self.etcd.start()
        write_certificates(self._certificates, (self.addresses.host, self.addresses.services[1]))
        self._write_identities()
        self.api_server.start()
        self.scheduler.start()
        self.controller_manager.start()
        self.dns.start()

    @property
    def _certificates(self) -> Path:
        return self.folder / "certificates"

    @property
    def _tokens(self) -> Path:
        return self.folder / "tokens"

    def _process(self, name: str) -> Process:
        return Process(name, self.processes)

    def _write_identities(self) -> None:
        identities = _identities(self.nodes)
        write_tokens(self._tokens, tuple(identities.values()))
        for file, identity in identities.items():
            write_kubeconfig(self.kubeconfigs / file, self.api_server.endpoint, identity.token)


def _identities(nodes: tuple[str, ...]) -> dict[str, Identity]:
    """Who there is, by the name of the kubeconfig; the users are those that Kubernetes has roles for."""
    programs = ("kube-scheduler", "kube-controller-manager")
    return {
        "admin": make_identity("admin", _EVERYTHING),
        "coredns": make_identity("coredns", _EVERYTHING),
        "kwok": make_identity("kwok", _EVERYTHING),
        "storage": make_identity("storage", _EVERYTHING),
        NETWORK_POLICIES: make_identity(NETWORK_POLICIES),
        "kube-proxy": make_identity("system:kube-proxy", "system:node-proxier"),
        **{name: make_identity(f"system:{name}") for name in programs},
        **{name: make_identity(f"system:node:{name}", "system:nodes") for name in nodes},
    }
