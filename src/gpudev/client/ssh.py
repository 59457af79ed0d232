"""The SSH configuration of a reservation: two small files, so that plain OpenSSH does the rest.

`~/.gpu-dev/<id8>-sshconfig` makes `gpu-dev-<id8>` and `gpu-dev-<name>` hosts, and
`~/.gpu-dev/<id8>-known_hosts` holds the host keys that the server told us. Checking is strict: nobody is
ever asked about a host key. Where there are several nodes, the others are hosts with their rank after both
names. The name alone is no host: once the files are included in the user's own configuration, it could be
that of a machine of the user's.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from gpudev.client.config import LOOPBACK_HOSTS, Surroundings, normalise_url
from gpudev.client.errors import NotActive, ServerFailed
from gpudev.client.files import write_private
from gpudev.wire.jobs import JobDetail, JobNode

ID8_LENGTH = 8
PREFIX = "gpu-dev-"
LOGIN = "dev"
OWNER_LINE = "# A reservation of "
CONFIG_SUFFIX, KNOWN_HOSTS_SUFFIX = "-sshconfig", "-known_hosts"

KEY_KINDS = frozenset(
    {
        "ssh-ed25519",
        "ssh-rsa",
        "ecdsa-sha2-nistp256",
        "ecdsa-sha2-nistp384",
        "ecdsa-sha2-nistp521",
        "sk-ssh-ed25519@openssh.com",
        "sk-ecdsa-sha2-nistp256@openssh.com",
    }
)
"""Those that a dev server accepts. Others, certificates among them, are left at home."""

AT_THE_API = "/"
"""For the address of a proxy that answers where the API does."""

_HOST_WORD = re.compile(r"[A-Za-z0-9.:_-]+")


def id8(reservation_id: str) -> str:
    return reservation_id[:ID8_LENGTH]


def host_alias(reservation_id: str, rank: int = 0) -> str:
    return _ranked(f"{PREFIX}{id8(reservation_id)}", rank)


def _ranked(name: str, rank: int) -> str:
    return f"{name}-{rank}" if rank else name


@dataclass(frozen=True, slots=True)
class Host:
    """A node of a reservation, as OpenSSH is told of it."""

    rank: int
    alias: str
    name: str
    address: str
    port: int
    host_keys: tuple[str, ...]
    proxy_command: str = ""
    """How to get there, where not directly."""


def config_file(surroundings: Surroundings, reservation_id: str) -> Path:
    return surroundings.state_dir / f"{id8(reservation_id)}{CONFIG_SUFFIX}"


def known_hosts_file(surroundings: Surroundings, reservation_id: str) -> Path:
    return surroundings.state_dir / f"{id8(reservation_id)}{KNOWN_HOSTS_SUFFIX}"


def write_config(
    surroundings: Surroundings, api_url: str, job: JobDetail, identity_files: Iterable[Path]
) -> Path:
    """Make an active reservation a host of OpenSSH. Returns the file for `ssh -F`."""
    hosts = tuple(
        replace(host, proxy_command=_proxy_command(job, host.rank, api_url)) for host in list_hosts(job)
    )
    if not hosts:
        raise NotActive(
            f"Reservation {id8(job.job_id)} is {job.status}: there is nothing to connect to.",
            hint=f"See where it stands with: gpu-dev show {id8(job.job_id)}",
        )
    for word in (job.job_id, job.name, *(host.address for host in hosts)):
        _check_host_word(word)
    known_hosts = known_hosts_file(surroundings, job.job_id)
    config = config_file(surroundings, job.job_id)
    write_private(known_hosts, "".join(format_known_hosts(host.alias, host.host_keys) for host in hosts))
    keys = tuple(identity_files)
    text = "".join(format_host(host, known_hosts, keys) for host in hosts)
    write_private(config, f"{OWNER_LINE}{api_url}\n{text}")
    return config


def list_hosts(job: JobDetail) -> tuple[Host, ...]:
    """The nodes that can be reached, by rank."""
    nodes: Sequence[JobDetail | JobNode] = job.nodes or [job]
    return tuple(
        Host(
            rank=rank,
            alias=host_alias(job.job_id, rank),
            name=_ranked(f"{PREFIX}{job.name}", rank),
            address=node.node_ip,
            port=node.node_port,
            host_keys=tuple(node.ssh_host_keys or ()),
        )
        for rank, node in enumerate(nodes)
        if node.node_ip is not None and node.node_port is not None
    )


def _proxy_command(job: JobDetail, rank: int, api_url: str) -> str:
    """This very program, wherever OpenSSH is started from, with all that it needs to know."""
    if job.ssh_proxy_url is None:
        return ""
    program = [sys.executable, "-P", "-m", "gpudev.cli.main", "ssh-proxy"]
    options = ["--api-url", api_url, "--proxy-url", check_proxy_url(job.ssh_proxy_url, api_url)]
    return shlex.join([*program, *options, "--node", str(rank), job.job_id]).replace("%", "%%")


def check_proxy_url(proxy_url: str, api_url: str) -> str:
    """The key goes there, so a proxy is no less protected than the API that names it."""
    if proxy_url == AT_THE_API:
        return api_url
    proxy = normalise_url(proxy_url)
    host = urlsplit(proxy).hostname
    if not proxy.isprintable() or (_is_safe(api_url) and not _is_safe(proxy) and host not in LOOPBACK_HOSTS):
        raise ServerFailed(
            f"The SSH proxy {proxy!r} is not asked: your API key would go there unprotected.",
            hint="Its address must begin with https://, as that of the API does. Tell your operator.",
        )
    return proxy


def _is_safe(url: str) -> bool:
    return url.startswith("https:")


def delete_config(surroundings: Surroundings, reservation_id: str) -> None:
    config_file(surroundings, reservation_id).unlink(missing_ok=True)
    known_hosts_file(surroundings, reservation_id).unlink(missing_ok=True)


def delete_stale_configs(surroundings: Surroundings, api_url: str, live_ids: Collection[str]) -> None:
    """Remove the files of this server's reservations that are over; those of other servers stay."""
    live = {id8(reservation_id) for reservation_id in live_ids}
    for file in surroundings.state_dir.glob(f"*{CONFIG_SUFFIX}"):
        owner = file.name.removesuffix(CONFIG_SUFFIX)
        if owner not in live and file.read_text(encoding="utf-8").startswith(f"{OWNER_LINE}{api_url}\n"):
            delete_config(surroundings, owner)


def format_host(host: Host, known_hosts: Path, identity_files: Iterable[Path]) -> str:
    settings = [
        f"HostName {host.address}",
        f"Port {host.port}",
        f"User {LOGIN}",
        f"HostKeyAlias {host.alias}",
        f"UserKnownHostsFile {_quoted(known_hosts)}",
        "GlobalKnownHostsFile /dev/null",
        "StrictHostKeyChecking yes",
        "CheckHostIP no",
        "UpdateHostKeys no",
        *(f"IdentityFile {_quoted(file)}" for file in identity_files),
        "ServerAliveInterval 30",
        *([f"ProxyCommand {host.proxy_command}"] if host.proxy_command else []),
    ]
    return "\n    ".join([f"Host {host.alias} {host.name}", *settings]) + "\n"


def format_known_hosts(alias: str, host_keys: Iterable[str]) -> str:
    """The server's host keys under our alias, whatever address their lines begin with."""
    return "".join(f"{alias} {_bare_key(line)}\n" for line in host_keys)


def _bare_key(line: str) -> str:
    """`<algorithm> <base64>`, out of a known_hosts line or a public key."""
    fields = line.split()
    start = next((index for index, field in enumerate(fields) if field in KEY_KINDS), 0)
    return " ".join(fields[start : start + 2])


def _check_host_word(word: str) -> None:
    """Nothing but a plain word of the server's goes into a file that OpenSSH takes its orders from."""
    if _HOST_WORD.fullmatch(word) is None:
        raise ServerFailed(f"The server's answer names a host that cannot be one: {word!r}.")


def _quoted(path: Path) -> str:
    """A path for OpenSSH: it splits at blanks, and reads % as the start of a token."""
    return '"{}"'.format(str(path).replace("%", "%%"))
