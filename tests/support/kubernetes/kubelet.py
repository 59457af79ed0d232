"""The kubelet of one node."""

from __future__ import annotations

import json
import resource
import signal
import socket
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from tests.support.kubernetes.containerd import SOCKET
from tests.support.kubernetes.namespaces import Namespaces
from tests.support.kubernetes.processes import Process
from tests.support.kubernetes.programs import get_program

MAX_PODS = 200
_PORT = 10250

KERNEL_SETTINGS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}
"""What a kubelet sets for the whole machine, unless it finds it so."""


@dataclass(frozen=True, slots=True)
class Kubelet:
    node: str
    address: IPv4Address
    dns: IPv4Address
    cgroup: str
    folder: Path
    kubeconfig: Path
    inside: Namespaces
    process: Process

    def start(self, labels: dict[str, str]) -> None:
        self._write_config()
        self.process.start(
            [
                get_program("kubelet"),
                f"--config={self.folder / 'kubelet.json'}",
                f"--kubeconfig={self.kubeconfig}",
                f"--hostname-override={self.node}",
                f"--node-ip={self.address}",
                f"--node-labels={','.join(f'{name}={value}' for name, value in labels.items())}",
                "--v=1",
            ],
            inside=self.inside,
        )

    def wait(self) -> None:
        """Until it can be asked for logs and commands."""
        self.process.wait_until(self._is_listening, "listening")

    def stop(self) -> None:
        """By force: the pods run on, and the node is silent."""
        self.process.stop(signal.SIGKILL)

    def _is_listening(self) -> bool:
        with socket.socket() as connection:
            return connection.connect_ex((str(self.address), _PORT)) == 0

    def _write_config(self) -> None:
        resolver = self.folder / "resolv.conf"
        resolver.write_text(f"nameserver {self.dns}\n")
        (self.folder / "kubelet.json").write_text(json.dumps(self._config(resolver)))

    def _config(self, resolver: Path) -> dict[str, Any]:
        _, open_files = resource.getrlimit(resource.RLIMIT_NOFILE)
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": str(self.address),
            "port": _PORT,
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "containerRuntimeEndpoint": f"unix://{SOCKET}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self.cgroup}",
            "failCgroupV1": False,
            "enforceNodeAllocatable": ["none"],
            # The machine may refuse to raise limits or to lower oom_score_adj.
            "oomScoreAdj": 0,
            "maxOpenFiles": min(open_files, 100_000),
            "maxPods": MAX_PODS,
            "clusterDNS": [str(self.dns)],
            "clusterDomain": "cluster.local",
            "resolvConf": str(resolver),
            "volumePluginDir": "/var/lib/kubelet/volume-plugins",
            "failSwapOn": False,
            "serializeImagePulls": False,
            # The disk is this machine's, and how full it is says nothing about the tests.
            "imageGCHighThresholdPercent": 100,
            "evictionHard": {
                "memory.available": "100Mi",
                "nodefs.available": "1%",
                "imagefs.available": "1%",
            },
            # Well within `--node-monitor-grace-period`, after which a silent node counts as lost.
            "nodeStatusUpdateFrequency": "5s",
            "nodeLeaseDurationSeconds": 20,
            "kubeAPIQPS": 200,
            "kubeAPIBurst": 400,
        }
