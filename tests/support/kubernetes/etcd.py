"""The store of the API server: an etcd that need not survive a power cut here."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from tests.support.kubernetes.probe import answers_ok
from tests.support.kubernetes.processes import Process
from tests.support.kubernetes.programs import get_program

_CLIENT_PORT = 2379
_PEER_PORT = 2380
_BYTES = 4 * 2**30


@dataclass(frozen=True, slots=True)
class Etcd:
    address: IPv4Address
    data: Path
    process: Process

    @property
    def url(self) -> str:
        return f"http://{self.address}:{_CLIENT_PORT}"

    def start(self) -> None:
        peers = f"http://{self.address}:{_PEER_PORT}"
        self.process.start(
            [
                get_program("etcd"),
                "--name=test",
                f"--data-dir={self.data}",
                f"--listen-client-urls={self.url}",
                f"--advertise-client-urls={self.url}",
                f"--listen-peer-urls={peers}",
                f"--initial-advertise-peer-urls={peers}",
                f"--initial-cluster=test={peers}",
                f"--quota-backend-bytes={_BYTES}",
                "--unsafe-no-fsync",
                "--log-level=warn",
            ],
        )

    def wait(self) -> None:
        self.process.wait_until(self._is_healthy, "healthy")

    def _is_healthy(self) -> bool:
        return answers_ok(self.address, _CLIENT_PORT, "/health")
