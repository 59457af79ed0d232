"""The environment of a dev server.

What the user gave is in the Secret, since it may be a token. Ours is in the pod: defaults, which the user may
have replaced, and what belongs to gpu-dev, whose names nobody else can use.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpudev.adapters.kubernetes.api_objects import Json
from gpudev.adapters.kubernetes.manifests.metadata import gang_hosts
from gpudev.adapters.kubernetes.manifests.resources import WORKSPACE
from gpudev.domain.gang import DEFAULT_MASTER_PORT, MASTER_PORT, gang_environment
from gpudev.domain.names import NodeName
from gpudev.domain.server import (
    DRIVER_CAPABILITIES,
    NO_GPUS,
    ServerSpec,
    cache_folders,
    reservation_variables,
    thread_counts,
)

_SECRET_PREFIX = "env."  # noqa: S105 - the beginning of a key's name


def secret_keys(variables: Mapping[str, str]) -> dict[str, str]:
    return {_SECRET_PREFIX + name: value for name, value in variables.items()}


def make_environment(spec: ServerSpec, secret_name: str, rank: int = 0) -> list[Json]:
    gang = _gang_variables(spec, rank) if spec.is_gang else {}
    own = {**_defaults(spec), **_own_variables(spec, spec.nodes[rank]), **_about(spec, rank), **gang}
    return [
        *(_from_secret(name, secret_name) for name in spec.env_vars),
        *(
            {"name": name, "value": _literal(value)}
            for name, value in own.items()
            if name not in spec.env_vars
        ),
    ]


def _defaults(spec: ServerSpec) -> dict[str, str]:
    return {**cache_folders(WORKSPACE), **thread_counts(spec.share.cpu_limit)}


def _own_variables(spec: ServerSpec, node: NodeName) -> dict[str, str]:
    return {**_gpu_variables(spec), **reservation_variables(spec, node)}


def _about(spec: ServerSpec, rank: int) -> dict[str, str]:
    """What its greeting says besides."""
    disk = {"GPU_DEV_DISK": spec.home.disk_name} if spec.home and rank == 0 else {}
    return {**disk, **({"GPU_DEV_NOTICE": " ".join(spec.notice.split())} if spec.notice else {})}


def _gang_variables(spec: ServerSpec, rank: int) -> Mapping[str, str]:
    hosts = gang_hosts(spec)
    return {MASTER_PORT: DEFAULT_MASTER_PORT, **gang_environment(hosts, rank, hosts[0])}


def _gpu_variables(spec: ServerSpec) -> dict[str, str]:
    """Which GPUs are visible is the device plugin's to say."""
    return (
        DRIVER_CAPABILITIES if spec.gpu_count else {**DRIVER_CAPABILITIES, "NVIDIA_VISIBLE_DEVICES": NO_GPUS}
    )


def _from_secret(name: str, secret_name: str) -> Json:
    return {
        "name": name,
        "valueFrom": {"secretKeyRef": {"name": secret_name, "key": _SECRET_PREFIX + name}},
    }


def _literal(value: str) -> str:
    """Kubernetes would put in other variables where it reads `$(NAME)`."""
    return value.replace("$", "$$")
