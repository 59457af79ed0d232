"""The API server, and the two programs that only talk to it: the scheduler and the controller manager."""

from __future__ import annotations

import signal
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from tests.support.kubernetes.kubeconfig import API_PORT, Endpoint
from tests.support.kubernetes.network import NODE_PORTS, Addresses
from tests.support.kubernetes.processes import Process
from tests.support.kubernetes.programs import get_program

_UNREACHABLE = (urllib.error.URLError, ConnectionError, TimeoutError)


@dataclass(frozen=True, slots=True)
class ApiServer:
    addresses: Addresses
    etcd: str
    certificates: Path
    tokens: Path
    process: Process

    @property
    def endpoint(self) -> Endpoint:
        authority = (self.certificates / "ca.crt").read_bytes()
        return Endpoint(f"https://{self.addresses.host}:{API_PORT}", authority)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.process.start([get_program("kube-apiserver"), *self._flags()])
        self.process.wait_until(self.is_ready, "ready")

    def stop(self, number: signal.Signals = signal.SIGKILL) -> None:
        """By force, as an outage would; everything is in etcd."""
        self.process.stop(number)

    def is_ready(self) -> bool:
        context = ssl.create_default_context(cadata=self.endpoint.authority.decode())
        try:
            with urllib.request.urlopen(f"{self.endpoint.address}/readyz", timeout=2, context=context):  # noqa: S310 - https, see `endpoint`
                return True
        except _UNREACHABLE:
            return False

    def _flags(self) -> list[str]:
        accounts = self.certificates / "service-accounts"
        return [
            f"--etcd-servers={self.etcd}",
            f"--bind-address={self.addresses.host}",
            f"--advertise-address={self.addresses.host}",
            f"--secure-port={API_PORT}",
            f"--tls-cert-file={self.certificates / 'api-server.crt'}",
            f"--tls-private-key-file={self.certificates / 'api-server.key'}",
            f"--service-cluster-ip-range={self.addresses.services}",
            f"--service-node-port-range={NODE_PORTS}",
            f"--token-auth-file={self.tokens}",
            f"--service-account-key-file={accounts}.pub",
            f"--service-account-signing-key-file={accounts}.key",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            # The names of the nodes resolve nowhere on this machine.
            "--kubelet-preferred-address-types=InternalIP",
            # Tests ask for much in a short time; nobody else is there to be protected from them.
            "--max-requests-inflight=2000",
            "--max-mutating-requests-inflight=1000",
            "--profiling=false",
        ]


@dataclass(frozen=True, slots=True)
class Scheduler:
    address: IPv4Address
    kubeconfig: Path
    process: Process

    def start(self) -> None:
        self.process.start(
            [
                get_program("kube-scheduler"),
                f"--kubeconfig={self.kubeconfig}",
                f"--bind-address={self.address}",
                "--leader-elect=false",
                "--kube-api-qps=500",
                "--kube-api-burst=1000",
            ],
        )


@dataclass(frozen=True, slots=True)
class ControllerManager:
    address: IPv4Address
    kubeconfig: Path
    certificates: Path
    process: Process

    def start(self) -> None:
        self.process.start(
            [
                get_program("kube-controller-manager"),
                f"--kubeconfig={self.kubeconfig}",
                f"--bind-address={self.address}",
                f"--root-ca-file={self.certificates / 'ca.crt'}",
                f"--service-account-private-key-file={self.certificates / 'service-accounts.key'}",
                "--use-service-account-credentials=true",
                "--leader-elect=false",
                "--node-monitor-period=2s",
                "--node-monitor-grace-period=25s",
                "--kube-api-qps=500",
                "--kube-api-burst=1000",
            ],
        )
