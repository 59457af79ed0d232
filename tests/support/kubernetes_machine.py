"""The whole product on this machine, its dev servers in a Kubernetes, under the roles that it ships."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from tests.support.kubernetes.access import Access
from tests.support.kubernetes.images import DEVSERVER
from tests.support.kubernetes_roles import CONTROLLER, applied_roles
from tests.support.machine import Machine, running_machine
from tests.support.second_controller import second_controller

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
def running_on_kubernetes(
    access: Access, namespace: str, folder: Path, *, controllers: int = 1, **settings: str
) -> Iterator[Machine]:
    """One controller and one API process, or two of each."""
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
            "GPU_DEV_API_WORKERS": str(controllers),
            # Tests kill controllers again and again, and wait for what they held.
            "GPU_DEV_LEASE_SECONDS": "4",
        }
        with (
            running_machine("--cluster", "kubernetes", **(own | settings)) as machine,
            second_controller(machine) if controllers > 1 else nullcontext(),
        ):
            yield machine
