"""The variables that every dev server has, wherever it runs."""

from __future__ import annotations

from gpudev.domain.catalogue import Amount
from gpudev.domain.names import NodeName
from gpudev.domain.server import ServerSpec

NO_GPUS = "void"
"""For `NVIDIA_VISIBLE_DEVICES`: images of NVIDIA say "all" themselves, and nothing at all means that, too."""
DRIVER_CAPABILITIES = {"NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}

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


def thread_counts(cores: Amount) -> dict[str, str]:
    """As many threads as there are cores to run them: libraries that count the machine's take too many."""
    return dict.fromkeys(_THREAD_COUNTS, str(max(1, int(cores))))


def cache_folders(workspace: str) -> dict[str, str]:
    """Caches that grow big go to the workspace, away from the home that is kept."""
    return {name: f"{workspace}/.cache/{folder}" for name, folder in _CACHES.items()}


def reservation_variables(spec: ServerSpec, node: NodeName) -> dict[str, str]:
    """Whose server it is; nothing given by the user can replace these."""
    return {
        "GPU_DEV_RESERVATION_ID": spec.reservation_id,
        "GPU_DEV_RESERVATION_NAME": spec.reservation_name,
        "GPU_DEV_USER": spec.username,
        "GPU_DEV_GPU_TYPE": spec.gpu_type,
        "GPU_DEV_GPU_COUNT": str(spec.gpus_per_node),
        "GPU_DEV_NODE": node,
    }
