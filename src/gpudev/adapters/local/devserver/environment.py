"""The environment of everything that runs in a dev server, and the greeting after a login."""

from __future__ import annotations

import os
import pwd
import textwrap
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpudev.adapters.local.cgroups import describe_limits, limits_of
from gpudev.adapters.local.ports import HOST
from gpudev.adapters.local.processes.identity import MARK
from gpudev.adapters.local.record import Record
from gpudev.adapters.local.sandbox.isolation import Isolation
from gpudev.domain.audit import make_printable
from gpudev.domain.gang import DEFAULT_MASTER_PORT, MASTER_PORT, gang_environment
from gpudev.domain.server import (
    DRIVER_CAPABILITIES,
    NO_GPUS,
    cache_folders,
    reservation_variables,
    thread_counts,
)
from gpudev.texts.fact import Fact, fact
from gpudev.texts.sentences import say

_PATH = "/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SHELLS = ("zsh", "bash")
_PLAIN_SHELLS = ("/bin/bash", "/bin/sh")
_WIDTH = 80
_INDENT = " " * len("  Isolation  ")


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


def compose_greeting(
    record: Record, account: Account, isolation: Isolation, enforced: Collection[str] = ()
) -> str:
    """`enforced` names the controllers of the server's cgroup, if it has one."""
    spec = record.spec
    has_own_user = isolation is Isolation.BUBBLEWRAP
    limits = describe_limits(limits_of(spec.share), enforced, has_own_user=has_own_user)
    fields = [
        _describe_gpus(record),
        *([_describe_gang(record, isolation)] if record.gang else []),
        fact("greeting_length", length=spec.duration),
        _describe_home(record, account),
        fact("greeting_scratch", workspace=account.workspace),
        _describe_isolation(isolation),
        fact("greeting_limits", limits=limits),
        *([fact("greeting_no_root")] if has_own_user else []),
        *([fact("greeting_notice", notice=spec.notice)] if spec.notice else []),
    ]
    title = fact("greeting_title", name=spec.reservation_name, id=spec.reservation_id, username=spec.username)
    lines = [make_printable(say(field)) for field in fields]
    return "\n".join([make_printable(say(title)), *map(_fold, lines), ""])


def _fold(field: str) -> str:
    """In the width that every terminal has: the greeting is written before anybody's is known."""
    return textwrap.fill(
        field, _WIDTH, subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False
    )


def _describe_home(record: Record, account: Account) -> Fact:
    home = record.home
    if home is None:
        return fact("greeting_home", home=account.home)
    return fact("greeting_disk", home=account.home, disk=home.disk_name, size_gb=home.size_gb)


def _describe_gpus(record: Record) -> Fact:
    spec, node = record.spec, record.node
    if not spec.gpu_count:
        return fact("greeting_no_gpus", gpu_type=spec.gpu_type, node=node)
    if is_simulated(record):
        return fact("greeting_simulated_gpus", count=spec.gpus_per_node, gpu_type=spec.gpu_type, node=node)
    return fact("greeting_gpus", count=spec.gpus_per_node, gpu_type=spec.gpu_type, node=node)


def _describe_gang(record: Record, isolation: Isolation) -> Fact:
    names = record.spec.member_names
    others = [name for name in names if name != record.name]
    rank, size = record.rank, len(names)
    if isolation is Isolation.BUBBLEWRAP:
        return fact("greeting_gang", rank=rank, size=size, others=others)
    # There is no file of names of its own without a sandbox.
    return fact("greeting_gang_without_names", rank=rank, size=size, others=others, host=HOST)


def _describe_isolation(isolation: Isolation) -> Fact:
    if isolation is Isolation.BUBBLEWRAP:
        return fact("greeting_isolation", isolation=isolation.told)
    return fact("greeting_without_isolation", isolation=isolation.told)
