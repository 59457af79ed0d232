"""The containerd of one node: its own root, state and socket, and the images that it is given."""

from __future__ import annotations

import json
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from tests.support.kubernetes.debian import CNI_PLUGINS
from tests.support.kubernetes.images import PAUSE
from tests.support.kubernetes.namespaces import Namespaces
from tests.support.kubernetes.processes import Process

# In the /run of the node, which no other node sees.
SOCKET = Path("/run/containerd/containerd.sock")

# The machine may lack CAP_SYS_RESOURCE, hence restrict_oom_score_adj.
_CONFIG = """
version = 2
root = "{root}"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{network}"
"""


@dataclass(frozen=True, slots=True)
class Containerd:
    folder: Path
    pods: IPv4Network
    inside: Namespaces
    process: Process

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._write_config()
        self.process.start(["containerd", "--config", str(self.folder / "config.toml")], inside=self.inside)
        self.process.wait_until(self._is_ready, "ready")

    def import_image(self, archive: Path) -> None:
        self._ctr("--namespace", "k8s.io", "images", "import", "--all-platforms", str(archive))

    def _is_ready(self) -> bool:
        return Path(f"/proc/{self.inside.init.get_pid()}/root{SOCKET}").is_socket()

    def _ctr(self, *arguments: str) -> str:
        return self.inside.run("ctr", "--address", str(SOCKET), *arguments)

    def _write_config(self) -> None:
        network = self.folder / "network"
        network.mkdir(parents=True, exist_ok=True)
        (network / "10-pods.conflist").write_text(json.dumps(_pod_network(self.pods, self.folder / "leases")))
        (self.folder / "config.toml").write_text(
            _CONFIG.format(
                root=self.folder / "root",
                socket=SOCKET,
                pause=PAUSE.name,
                plugins=CNI_PLUGINS,
                network=network,
            )
        )


def _pod_network(pods: IPv4Network, leases: Path) -> dict[str, object]:
    """One link a pod, routed: packets between two pods of a node pass the node's filters, as they must."""
    addresses = {
        "type": "host-local",
        "dataDir": str(leases),
        "ranges": [[{"subnet": str(pods)}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    return {
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [
            {"type": "ptp", "ipMasq": False, "mtu": 1500, "ipam": addresses},
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }
