"""The environment of everything that runs in a dev server."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpudev.adapters.local.processes.descendants import MARK
from gpudev.adapters.local.record import Record
from gpudev.adapters.local.ssh_port import HOST
from gpudev.domain.gang import DEFAULT_MASTER_PORT, MASTER_PORT, gang_environment

_PATH = "/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
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
"""Caches that grow big go to the workspace, away from the home that is kept."""
_NO_GPUS = "void"
_SHELLS = ("zsh", "bash")
_PLAIN_SHELLS = ("/bin/bash", "/bin/sh")


@dataclass(frozen=True, slots=True)
class Account:
    """Who one is after logging in."""

    user: str
    home: str
    workspace: str
    shell: str
    programs: str = ""
    """A directory that comes first on the path."""


def choose_shell() -> str:
    """The shell of whoever started gpu-dev if it is zsh or bash, else the plainest that is there."""
    own = pwd.getpwuid(os.getuid()).pw_shell
    wanted = [own] if Path(own).name in _SHELLS else []
    return next(shell for shell in (*wanted, *_PLAIN_SHELLS) if os.access(shell, os.X_OK))


def build_environment(record: Record, account: Account, cores: int) -> dict[str, str]:
    """What belongs to gpu-dev comes last, so that nothing given by the user can replace it."""
    return {
        **_defaults(account),
        **_caches(account),
        **_thread_counts(record, cores),
        **({MASTER_PORT: DEFAULT_MASTER_PORT} if record.gang else {}),
        **record.spec.env_vars,
        **_gpus(record),
        **_reservation(record),
        **(gang_environment(record.spec.member_names, record.rank, HOST) if record.gang else {}),
    }


def _defaults(account: Account) -> Mapping[str, str]:
    return {
        "PATH": f"{account.programs}:{_PATH}" if account.programs else _PATH,
        "LANG": "C.UTF-8",
        "USER": account.user,
        "LOGNAME": account.user,
        "HOME": account.home,
        "SHELL": account.shell,
    }


def _caches(account: Account) -> Mapping[str, str]:
    return {name: f"{account.workspace}/.cache/{folder}" for name, folder in _CACHES.items()}


def _thread_counts(record: Record, cores: int) -> Mapping[str, str]:
    """As many threads as the share allows: libraries that count the machine's cores take too many."""
    threads = max(1, int(min(record.spec.share.cpu_limit, cores)))
    return dict.fromkeys(_THREAD_COUNTS, str(threads))


def _gpus(record: Record) -> Mapping[str, str]:
    names = ",".join(gpu.visible_name for gpu in record.gpus)
    return {
        "CUDA_VISIBLE_DEVICES": names,
        "NVIDIA_VISIBLE_DEVICES": names or _NO_GPUS,
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
    }


def _reservation(record: Record) -> Mapping[str, str]:
    spec = record.spec
    return {
        "GPU_DEV_RESERVATION_ID": spec.reservation_id,
        "GPU_DEV_RESERVATION_NAME": spec.reservation_name,
        "GPU_DEV_USER": spec.username,
        "GPU_DEV_GPU_TYPE": spec.gpu_type,
        "GPU_DEV_GPU_COUNT": str(spec.gpus_per_node),
        "GPU_DEV_NODE": record.node,
        MARK: record.name,
        "GPU_DEV_SIMULATED": "1" if is_simulated(record) else "0",
    }


def is_simulated(record: Record) -> bool:
    return any(gpu.is_simulated for gpu in record.gpus)
