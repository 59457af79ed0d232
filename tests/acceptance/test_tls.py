"""Behind TLS, as everybody but the owner of this machine meets the server: calls, streams and SSH."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gpudev.client.config import Surroundings
from gpudev.client.files import Credentials
from tests.support.machine import Machine, on_database, running_machine
from tests.support.relay import HOST
from tests.support.tls import Certificates, tls_before


@dataclass(frozen=True, slots=True)
class Protected:
    """A machine and its addresses that begin with https."""

    machine: Machine
    api_port: int
    proxy_url: str

    def without_trust(self) -> Machine:
        settings = {name: text for name, text in self.machine.settings.items() if name != "SSL_CERT_FILE"}
        return Machine(self.machine.home, settings)


@pytest.fixture(scope="module")
def protected(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Protected]:
    certificates = Certificates.make(tmp_path_factory.mktemp("certificates"))
    with socket.create_server((HOST, 0)) as probe:
        proxy = probe.getsockname()[1]
    settings = {"GPU_DEV_SSH_PROXY_PORT": str(proxy), **on_database(module_database)}
    with running_machine("--fleet", "test", **settings) as plain:
        address, key = log_in(plain)
        with tls_before(address, certificates) as api_port, tls_before(proxy, certificates) as proxy_port:
            for host in (HOST, "localhost"):
                keep_key(plain, f"https://{host}:{api_port}", key)
            own = {
                "GPU_DEV_API_URL": f"https://{HOST}:{api_port}",
                "SSL_CERT_FILE": str(certificates.authority),
            }
            machine = Machine(plain.home, {**plain.settings, **own})
            yield Protected(machine, api_port, f"https://{HOST}:{proxy_port}")


def log_in(machine: Machine) -> tuple[int, str]:
    """The port of the API, and a key for it: who comes through TLS uses it as well."""
    with machine.client() as client:
        client.log_in()
        port, address = urlsplit(client.target.api_url).port, client.target.api_url
    key = credentials_of(machine).find_key(address, datetime.now(UTC))
    assert port is not None
    assert key is not None
    return port, key


def keep_key(machine: Machine, api_url: str, key: str) -> None:
    credentials_of(machine).keep_key(api_url, key, datetime.now(UTC) + timedelta(hours=1))


def credentials_of(machine: Machine) -> Credentials:
    config = machine.home / ".config" / "gpu-dev" / "config.json"
    return Credentials(Surroundings(machine.home, config).credentials_file)


@pytest.fixture(scope="module")
def reservation(protected: Protected) -> str:
    """Waited for by the stream of events."""
    return protected.machine.reserve("-t", "t4")


def test_calls_and_streams(protected: Protected, reservation: str) -> None:
    assert [job["reservation_id"] for job in protected.machine.list()] == [reservation]
    assert protected.machine.ask("whoami")["api_url"].startswith("https://")


def test_ssh_and_files_go_through_whole(protected: Protected, reservation: str, tmp_path: Path) -> None:
    content = os.urandom(16 << 20)
    (tmp_path / "out.bin").write_bytes(content)
    config = protected.machine.home / ".gpu-dev" / f"{reservation[:8]}-sshconfig"
    lines = config.read_text()
    assert "--proxy-url " in lines
    plain = lines.partition("--proxy-url ")[2].split()[0]
    own = tmp_path / "config"
    own.write_text(lines.replace(plain, protected.proxy_url))
    there = f"gpu-dev-{reservation[:8]}:data.bin"
    for source, target in ((str(tmp_path / "out.bin"), there), (there, str(tmp_path / "back.bin"))):
        copy = ["scp", "-q", "-F", str(own), source, target]
        subprocess.run(copy, env=protected.machine.environment, check=True, timeout=120)
    assert (tmp_path / "back.bin").read_bytes() == content


def test_an_authority_that_is_not_trusted(protected: Protected, reservation: str) -> None:
    done = protected.without_trust().run("list", check=False)
    assert done.returncode == 7
    assert "its certificate is not valid" in done.stderr
    tunnel = protected.without_trust().run(
        "ssh-proxy", reservation, "--proxy-url", protected.proxy_url, check=False
    )
    assert (tunnel.returncode, tunnel.stdout) == (7, "")


def test_a_certificate_for_another_name(protected: Protected) -> None:
    elsewhere = f"https://localhost:{protected.api_port}"
    machine = Machine(protected.machine.home, {**protected.machine.settings, "GPU_DEV_API_URL": elsewhere})
    done = machine.run("list", check=False)
    assert done.returncode == 7
    assert "its certificate is not valid" in done.stderr
    assert "localhost" in done.stderr
