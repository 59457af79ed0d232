"""The DNS of the cluster: CoreDNS on this machine, which the pods ask at the bridge's address."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.support.kubernetes.network import Addresses
from tests.support.kubernetes.probe import answers_ok
from tests.support.kubernetes.processes import Process
from tests.support.kubernetes.programs import get_program

_READY_PORT = 8181
_COREFILE = """\
.:53 {{
    bind {address}
    errors
    ready {loopback}:{port}
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {kubeconfig}
        pods insecure
        ttl 0
    }}
}}
"""


@dataclass(frozen=True, slots=True)
class Dns:
    addresses: Addresses
    folder: Path
    kubeconfig: Path
    process: Process

    def start(self) -> None:
        corefile = self.folder / "Corefile"
        corefile.write_text(
            _COREFILE.format(
                address=self.addresses.host,
                loopback=self.addresses.loopback,
                kubeconfig=self.kubeconfig,
                port=_READY_PORT,
            )
        )
        self.process.start([get_program("coredns"), "-conf", str(corefile)])

    def wait(self) -> None:
        """Until it knows the services."""
        self.process.wait_until(self._is_ready, "ready")

    def _is_ready(self) -> bool:
        return answers_ok(self.addresses.loopback, _READY_PORT, "/ready")
