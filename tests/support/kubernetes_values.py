"""Objects of the Kubernetes API as they come, short enough to read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from gpudev.adapters.kubernetes.api_objects import Json
from gpudev.adapters.kubernetes.config import KubernetesConfig
from gpudev.adapters.kubernetes.manifests.pod import PodOrder, make_pod
from gpudev.domain.catalogue import DEFAULT_CATALOGUE
from gpudev.domain.names import NodeName, ReservationId
from gpudev.domain.server import ServerSpec

NAMESPACE = "gpu-dev"
NOON = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)
RESERVATION = ReservationId("7f3a91c2-0000-4000-8000-000000000001")
HOST_KEY = "ssh-ed25519 AAAAHOST"
CONFIG = KubernetesConfig(catalogue=DEFAULT_CATALOGUE, image="registry.example/dev:1", namespace=NAMESPACE)


def at(seconds: float = 0) -> str:
    return (NOON + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def make_spec(gpu_type: str = "h100", gpus: int = 2, node: str = "h100-1", **changes: Any) -> ServerSpec:
    values: dict[str, Any] = {
        "reservation_id": RESERVATION,
        "reservation_name": "my-run",
        "username": "ada",
        "nodes": (NodeName(node),),
        "gpu_type": gpu_type,
        "gpu_count": gpus,
        "share": DEFAULT_CATALOGUE.get(gpu_type).share_of(gpus),
        "duration": timedelta(hours=4),
        "ssh_public_keys": ("ssh-ed25519 AAAAKEY ada@laptop",),
        "env_vars": {"WANDB_MODE": "offline"},
    }
    return ServerSpec(**(values | changes))


def make_order(spec: ServerSpec | None = None, config: KubernetesConfig = CONFIG, **changes: Any) -> PodOrder:
    spec = spec or make_spec()
    values: dict[str, Any] = {
        "service": "gpu-dev-slot-0a1b2c3d",
        "secret": spec.name,
        "startup": "gpu-dev-startup-1",
        "host_key": HOST_KEY,
        "node_storage_gib": 900,
    }
    return PodOrder(spec=spec, config=config, **(values | changes))


def made(manifest: Json, version: int = 1, uid: str = "uid-1") -> Json:
    """A manifest as the API gives it back."""
    metadata = {
        **manifest["metadata"],
        "uid": uid,
        "resourceVersion": str(version),
        "creationTimestamp": at(),
    }
    return {**manifest, "metadata": metadata}


def make_own_pod(status: Json | None = None, *, bound: bool = True, version: int = 1, **changes: Any) -> Json:
    pod = made(make_pod(make_order(make_spec(**changes))), version)
    spec = {**pod["spec"], **({"nodeName": changes.get("node", "h100-1")} if bound else {})}
    return {**pod, "spec": spec, "status": status or {"phase": "Pending"}}


def make_node(
    name: str = "h100-1", *, gpus: int = 8, version: int = 1, ready: str = "True", **spec: Any
) -> Json:
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": str(version),
            "labels": {"gpu-type": "h100"},
        },
        "spec": spec,
        "status": {
            "allocatable": {"cpu": "192", "ephemeral-storage": "900Gi", "nvidia.com/gpu": str(gpus)},
            "addresses": [
                {"type": "Hostname", "address": name},
                {"type": "InternalIP", "address": "10.0.0.7"},
            ],
            "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": at()}],
        },
    }


def waiting(reason: str, message: str = "", **container: Any) -> Json:
    """The status of a pod on its node whose container waits for something."""
    state = {"waiting": {"reason": reason, "message": message}}
    return {
        "phase": "Pending",
        "startTime": at(),
        "containerStatuses": [{"name": "dev", "restartCount": 0, "state": state, **container}],
    }


def running(restarts: int = 0, **container: Any) -> Json:
    state = {"running": {"startedAt": at()}}
    return {
        "phase": "Running",
        "podIP": "10.1.0.9",
        "containerStatuses": [{"name": "dev", "restartCount": restarts, "state": state, **container}],
    }


def unschedulable(message: str = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.") -> Json:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
        "lastTransitionTime": at(),
    }
    return {"phase": "Pending", "conditions": [condition]}
