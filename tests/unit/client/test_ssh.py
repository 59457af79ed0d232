"""The SSH files of a reservation, as OpenSSH itself reads them."""

from __future__ import annotations

import shlex
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gpudev.client import ssh
from gpudev.client.config import Surroundings
from gpudev.client.errors import ClientError, NotActive, ServerFailed
from gpudev.wire.jobs import JobDetail
from tests.support.wire_values import A_JOB, ACTIVE, GANG, JOB_ID

URL = "http://127.0.0.1:8321"


@pytest.fixture
def surroundings(tmp_path: Path) -> Surroundings:
    home = tmp_path / "home of 100% ada"
    home.mkdir()
    return Surroundings(home, home / "config.json")


def resolve(config: Path, host: str) -> dict[str, str]:
    """What `ssh` would do for this host."""
    command = ["ssh", "-G", "-F", str(config), host]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(line.split(" ", 1) for line in answer.stdout.splitlines() if " " in line)


@pytest.mark.parametrize("host", ["gpu-dev-7f3a91c2", "gpu-dev-train"])
def test_openssh_reads_what_we_mean(surroundings: Surroundings, host: str) -> None:
    key = surroundings.state_dir / "id_ed25519"
    settings = resolve(ssh.write_config(surroundings, URL, ACTIVE, [key]), host)
    assert settings["hostname"] == "127.0.0.1"
    assert settings["port"] == "30022"
    assert settings["user"] == "dev"
    assert settings["stricthostkeychecking"] == "true"
    assert settings["hostkeyalias"] == "gpu-dev-7f3a91c2"
    assert settings["identityfile"].replace("%%", "%") == str(key)


def test_the_name_alone_stays_free_for_a_machine_of_ones_own(surroundings: Surroundings) -> None:
    settings = resolve(ssh.write_config(surroundings, URL, ACTIVE, ()), "train")
    assert settings["hostname"] == "train"


@pytest.mark.parametrize(
    "rank, host", [(0, "gpu-dev-train"), (1, "gpu-dev-7f3a91c2-1"), (1, "gpu-dev-train-1")]
)
def test_every_node_of_a_gang_is_a_host(surroundings: Surroundings, rank: int, host: str) -> None:
    settings = resolve(ssh.write_config(surroundings, URL, GANG, ()), host)
    assert settings["port"] == str(30022 + rank)
    assert settings["hostkeyalias"] == ssh.host_alias(JOB_ID, rank)
    known = ssh.known_hosts_file(surroundings, JOB_ID)
    assert (
        f"{ssh.host_alias(JOB_ID, rank)} ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{rank}\n" in known.read_text()
    )


def test_host_keys_are_known_by_the_alias(surroundings: Surroundings) -> None:
    ssh.write_config(surroundings, URL, ACTIVE, ())
    known = ssh.known_hosts_file(surroundings, JOB_ID)
    assert known.read_text() == "gpu-dev-7f3a91c2 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI\n"


@pytest.mark.parametrize(
    "line", ["ssh-rsa AAAA", "[10.0.0.1]:22 ssh-rsa AAAA", "host,other ssh-rsa AAAA note"]
)
def test_a_host_key_is_found_in_any_line(line: str) -> None:
    assert ssh.format_known_hosts("it", [line]) == "it ssh-rsa AAAA\n"


def test_the_files_are_private(surroundings: Surroundings) -> None:
    ssh.write_config(surroundings, URL, ACTIVE, ())
    modes = {stat.S_IMODE(file.stat().st_mode) for file in surroundings.state_dir.iterdir()}
    assert modes == {0o600}
    assert stat.S_IMODE(surroundings.state_dir.stat().st_mode) == 0o700


def test_without_an_address_there_is_nothing_to_write(surroundings: Surroundings) -> None:
    with pytest.raises(NotActive, match="7f3a91c2 is pending"):
        ssh.write_config(surroundings, URL, A_JOB, ())


@pytest.mark.parametrize(
    "trick",
    [
        replace(ACTIVE, node_ip="h\n    ProxyCommand touch /tmp/x"),
        replace(ACTIVE, name="a *"),
        replace(ACTIVE, job_id="../../x"),
    ],
)
def test_a_server_cannot_slip_settings_in(surroundings: Surroundings, trick: JobDetail) -> None:
    with pytest.raises(ServerFailed, match="cannot be one"):
        ssh.write_config(surroundings, URL, trick, ())
    assert not surroundings.state_dir.exists()


@pytest.mark.parametrize("rank, host", [(0, "gpu-dev-7f3a91c2"), (1, "gpu-dev-7f3a91c2-1")])
def test_where_there_is_a_proxy_openssh_is_led_through_it(
    surroundings: Surroundings, rank: int, host: str
) -> None:
    job = replace(GANG, ssh_proxy_url="https://proxy.example.org/%41")
    config = ssh.write_config(surroundings, "https://api.example.org", job, ())
    command = shlex.split(resolve(config, host)["proxycommand"].replace("%%", "%"))
    assert command[-8:] == [
        *("ssh-proxy", "--api-url", "https://api.example.org"),
        *("--proxy-url", "https://proxy.example.org/%41", "--node", str(rank), JOB_ID),
    ]


def test_a_proxy_at_the_address_of_the_api_is_found_there() -> None:
    assert ssh.check_proxy_url("/", URL) == URL


@pytest.mark.parametrize(
    "proxy_url", ["http://proxy.example.org", "https://a.example\nProxyCommand x", "ftp://x", "$(id)"]
)
def test_a_key_is_not_sent_to_a_proxy_without_protection(surroundings: Surroundings, proxy_url: str) -> None:
    job = replace(ACTIVE, ssh_proxy_url=proxy_url)
    with pytest.raises(ClientError):
        ssh.write_config(surroundings, "https://api.example.org", job, ())
    assert not surroundings.state_dir.exists()


def test_only_files_of_this_servers_ended_reservations_are_removed(surroundings: Surroundings) -> None:
    live = replace(ACTIVE, job_id="aaaaaaaa-1")
    ended = replace(ACTIVE, job_id="bbbbbbbb-1")
    foreign = replace(ACTIVE, job_id="cccccccc-1")
    ssh.write_config(surroundings, URL, live, ())
    ssh.write_config(surroundings, URL, ended, ())
    ssh.write_config(surroundings, "https://gpu.example.org", foreign, ())
    ssh.delete_stale_configs(surroundings, URL, ["aaaaaaaa-1"])
    left = sorted(file.name for file in surroundings.state_dir.iterdir())
    assert left == [
        "aaaaaaaa-known_hosts",
        "aaaaaaaa-sshconfig",
        "cccccccc-known_hosts",
        "cccccccc-sshconfig",
    ]
