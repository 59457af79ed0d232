"""What the cluster needs from Debian; missing packages are installed where this process may do so."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.kubernetes.processes import ClusterFailed
from tests.support.kubernetes.progress import say

PACKAGES = {
    "containerd": "/usr/bin/containerd",
    "runc": "/usr/sbin/runc",
    "containernetworking-plugins": "/usr/lib/cni/ptp",
    "iptables": "/usr/sbin/iptables",
    "ipset": "/usr/sbin/ipset",
    "nftables": "/usr/sbin/nft",
    "conntrack": "/usr/sbin/conntrack",
    "iproute2": "/usr/sbin/ip",
    "debootstrap": "/usr/sbin/debootstrap",
    "openssh-client": "/usr/bin/ssh",
    "procps": "/usr/sbin/sysctl",
    "npm": "npm",
}
"""Each with the program that shows that it is there."""

CNI_PLUGINS = Path("/usr/lib/cni")


@dataclass(frozen=True, slots=True)
class Mirror:
    """Where this machine gets its Debian packages from."""

    address: str
    suite: str


def install_missing_packages() -> None:
    missing = [name for name, proof in PACKAGES.items() if not shutil.which(proof)]
    if not missing:
        return
    if os.geteuid() != 0:
        raise ClusterFailed(f"The test cluster needs root, and these packages: {' '.join(missing)}")
    say(f"Installing {' '.join(missing)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "--yes", "--quiet=2", "--no-install-recommends", *missing]
    for command in (["apt-get", "update", "--quiet=2"], install):
        subprocess.run(command, env=environment, check=True)


def find_mirror() -> Mirror:
    """The first repository of the running release, as apt knows it."""
    suite = _read_codename()
    listing = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=True,
    )
    for line in listing.stdout.splitlines():
        address, codename = line.split()
        if codename == suite:
            return Mirror(address, suite)
    raise ClusterFailed(f"apt knows no repository of {suite}")


def _read_codename() -> str:
    for line in Path("/etc/os-release").read_text().splitlines():
        name, _, value = line.partition("=")
        if name == "VERSION_CODENAME":
            return value.strip('"')
    raise ClusterFailed("/etc/os-release names no release: the test cluster needs Debian")
