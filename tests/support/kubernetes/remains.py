"""What there is of a cluster on this machine, found by looking at the machine and not at our own records."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from ipaddress import IPv4Network
from pathlib import Path

from gpudev.adapters.local.processes.identity import identify, list_pids
from tests.support.kubernetes.cgroups import list_cgroups
from tests.support.kubernetes.cluster import Cluster
from tests.support.kubernetes.processes import list_marked


def list_remains(cluster: Cluster) -> tuple[str, ...]:
    """Every process, mount, link, route, cgroup and folder of this cluster; none after `down`."""
    return (
        *_processes(cluster),
        *_mounts(cluster),
        *_links(cluster),
        *_routes(cluster),
        *(f"cgroup {path}" for node in cluster.nodes.values() for path in list_cgroups(node.cgroup)),
        *([f"folder {cluster.folder}"] if cluster.folder.exists() else []),
    )


def _processes(cluster: Cluster) -> Iterator[str]:
    """Those that were started for it, and those in containers, which only their cgroup tells."""
    marked = {identity.pid for identity in list_marked(cluster.folder / "processes")}
    for pid in list_pids():
        if pid in marked or (
            identify(pid) and any(_is_in_cgroup(pid, node.cgroup) for node in cluster.nodes.values())
        ):
            yield f"process {pid} {_read(f'/proc/{pid}/cmdline')!r}"


def _is_in_cgroup(pid: int, cgroup: str) -> bool:
    return f":/{cgroup}/" in _read(f"/proc/{pid}/cgroup")


def _mounts(cluster: Cluster) -> Iterator[str]:
    for line in _read("/proc/self/mountinfo").splitlines():
        if str(cluster.folder) in line:
            yield f"mount {line}"


def _links(cluster: Cluster) -> Iterator[str]:
    for link in _ip("link"):
        if link["ifname"] == cluster.bridge.name or link["ifname"].startswith(cluster.bridge.port_prefix):
            yield f"link {link['ifname']}"


def _routes(cluster: Cluster) -> Iterator[str]:
    for route in _ip("route"):
        to = route["dst"]
        if to != "default" and IPv4Network(to).subnet_of(cluster.addresses.cluster):
            yield f"route {to}"


def _ip(kind: str) -> list[dict[str, str]]:
    shown = subprocess.run(["ip", "-json", kind, "show"], capture_output=True, check=True)
    found: list[dict[str, str]] = json.loads(shown.stdout)
    return found


def _read(path: str) -> str:
    """A file of /proc; nothing if its process has ended."""
    try:
        return Path(path).read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
