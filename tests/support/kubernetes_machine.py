"""The whole product on this machine, its dev servers in a Kubernetes, under the roles that it ships."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.kubernetes.access import Access
from tests.support.kubernetes.images import DEVSERVER
from tests.support.kubernetes_roles import CONTROLLER, applied_roles
from tests.support.machine import Machine, running_machine

GPU_TYPES = """\
offered = ["h100", "a100"]

[[types]]
name = "h100"
gpus_per_node = 8
max_nodes = 2
vcpus = 192
memory_gib = 2048
share = { cpu = "10m", memory = "32Mi", cpu_limit = "1", memory_limit = "256Mi" }

[[types]]
name = "a100"
gpus_per_node = 8
vcpus = 96
memory_gib = 1152
share = { cpu = "10m", memory = "32Mi", cpu_limit = "1", memory_limit = "256Mi" }
"""


@contextmanager
def running_on_kubernetes(access: Access, namespace: str, folder: Path, **settings: str) -> Iterator[Machine]:
    types = folder / "gpu-types.toml"
    types.write_text(GPU_TYPES)
    with applied_roles(access, namespace, disks="GPU_DEV_DISK_STORAGE" in settings):
        own = {
            "GPU_DEV_KUBERNETES_KUBECONFIG": str(access.kubeconfig_for(CONTROLLER, namespace)),
            "GPU_DEV_KUBERNETES_NAMESPACE": namespace,
            "GPU_DEV_KUBERNETES_PULL_POLICY": "Never",
            "GPU_DEV_KUBERNETES_WORKSPACE_GIB": "1",
            "GPU_DEV_KUBERNETES_PORT_SLOTS": "2",
            "GPU_DEV_CONTAINER_IMAGE": DEVSERVER.name,
            "GPU_DEV_GPU_TYPES_FILE": str(types),
        }
        with running_machine("--cluster", "kubernetes", **(own | settings)) as machine:
            yield machine
