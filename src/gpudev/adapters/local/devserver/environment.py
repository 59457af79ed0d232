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
from gpudev.domain.server import (
    DRIVER_CAPABILITIES,
    NO_GPUS,
    cache_folders,
    reservation_variables,
    thread_counts,
)

_PATH = "/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
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
    """A directory that comes first on the path, also after a login shell has made its own path."""


def choose_shell() -> str:
    """The shell of whoever started gpu-dev if it is zsh or bash, else the plainest that is there."""
    own = pwd.getpwuid(os.getuid()).pw_shell
    wanted = [own] if Path(own).name in _SHELLS else []
    return next(shell for shell in (*wanted, *_PLAIN_SHELLS) if os.access(shell, os.X_OK))


def build_environment(record: Record, account: Account, cores: int) -> dict[str, str]:
    """What belongs to gpu-dev comes last, so that nothing given by the user can replace it."""
    return {
        **_defaults(account),
        **cache_folders(account.workspace),
        **thread_counts(min(record.spec.share.cpu_limit, cores)),
        **({MASTER_PORT: DEFAULT_MASTER_PORT} if record.gang else {}),
        **record.spec.env_vars,
        **_gpus(record),
        **_reservation(record),
        **({"GPU_DEV_PROGRAMS": account.programs} if account.programs else {}),
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


def _gpus(record: Record) -> Mapping[str, str]:
    names = ",".join(gpu.visible_name for gpu in record.gpus)
    return {
        "CUDA_VISIBLE_DEVICES": names,
        "NVIDIA_VISIBLE_DEVICES": names or NO_GPUS,
        **DRIVER_CAPABILITIES,
    }


def _reservation(record: Record) -> Mapping[str, str]:
    return {
        **reservation_variables(record.spec, record.node),
        MARK: record.name,
        "GPU_DEV_SIMULATED": "1" if is_simulated(record) else "0",
    }


def is_simulated(record: Record) -> bool:
    return any(gpu.is_simulated for gpu in record.gpus)
