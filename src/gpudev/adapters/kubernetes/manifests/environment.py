"""The environment of a dev server.

What the user gave is in the Secret, since it may be a token. Ours is in the pod: defaults, which the user may
have replaced, and what belongs to gpu-dev, whose names nobody else can use.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import floor

from gpudev.adapters.kubernetes.labels import Json
from gpudev.adapters.kubernetes.manifests.gang import gang_hosts
from gpudev.adapters.kubernetes.manifests.volumes import WORKSPACE
from gpudev.domain.gang import DEFAULT_MASTER_PORT, MASTER_PORT, gang_environment
from gpudev.domain.names import NodeName
from gpudev.domain.server import ServerSpec

_THREAD_COUNTS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
_CACHES = {
    "HF_HOME": "huggingface",
    "TORCH_HOME": "torch",
    "TRITON_CACHE_DIR": "triton",
    "TORCHINDUCTOR_CACHE_DIR": "torchinductor",
    "PIP_CACHE_DIR": "pip",
    "UV_CACHE_DIR": "uv",
}
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
    """Caches that grow big go to the workspace; as many threads as the share has cores to run them."""
    threads = str(max(1, floor(spec.share.cpu_limit)))
    caches = {name: f"{WORKSPACE}/.cache/{folder}" for name, folder in _CACHES.items()}
    return {**caches, **dict.fromkeys(_THREAD_COUNTS, threads)}


def _own_variables(spec: ServerSpec, node: NodeName) -> dict[str, str]:
    return {
        **_gpu_variables(spec),
        "GPU_DEV_RESERVATION_ID": spec.reservation_id,
        "GPU_DEV_RESERVATION_NAME": spec.reservation_name,
        "GPU_DEV_USER": spec.username,
        "GPU_DEV_GPU_TYPE": spec.gpu_type,
        "GPU_DEV_GPU_COUNT": str(spec.gpus_per_node),
        "GPU_DEV_NODE": node,
    }


def _about(spec: ServerSpec, rank: int) -> dict[str, str]:
    """What its greeting says besides."""
    disk = {"GPU_DEV_DISK": spec.home.disk_name} if spec.home and rank == 0 else {}
    return {**disk, **({"GPU_DEV_NOTICE": " ".join(spec.notice.split())} if spec.notice else {})}


def _gang_variables(spec: ServerSpec, rank: int) -> Mapping[str, str]:
    hosts = gang_hosts(spec)
    return {MASTER_PORT: DEFAULT_MASTER_PORT, **gang_environment(hosts, rank, hosts[0])}


def _gpu_variables(spec: ServerSpec) -> dict[str, str]:
    """Which GPUs are visible is the device plugin's to say; images of NVIDIA say "all", so none is said."""
    capabilities = {"NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
    return capabilities if spec.gpu_count else {**capabilities, "NVIDIA_VISIBLE_DEVICES": "void"}


def _from_secret(name: str, secret_name: str) -> Json:
    return {
        "name": name,
        "valueFrom": {"secretKeyRef": {"name": secret_name, "key": _SECRET_PREFIX + name}},
    }


def _literal(value: str) -> str:
    """Kubernetes would put in other variables where it reads `$(NAME)`."""
    return value.replace("$", "$$")
