"""TLS before a server on this machine, as a load balancer puts it there."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from tests.support.kubernetes.certificates import write_certificates
from tests.support.relay import HOST, running_relay


@dataclass(frozen=True, slots=True)
class Certificates:
    """Of an authority that nobody trusts by themselves, and one for this machine's address alone."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Certificates:
        write_certificates(folder, (IPv4Address(HOST),))
        return cls(folder)

    @property
    def authority(self) -> Path:
        return self.folder / "ca.crt"

    def for_server(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.folder / "api-server.crt", self.folder / "api-server.key")
        return context


@contextmanager
def tls_before(port: int, certificates: Certificates) -> Iterator[int]:
    """The port that speaks TLS."""
    with running_relay(lambda: port, certificates.for_server()) as front:
        yield front
