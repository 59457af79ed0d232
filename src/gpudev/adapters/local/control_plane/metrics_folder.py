"""Where the processes of the control plane share their metrics: in memory, not on the disk.

The metrics library maps its files. On a full disk a write to such a file kills the process, and the
homes of the dev servers, which users fill, lie on the same disk as the state folder.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from pathlib import Path

_MEMORY = Path("/dev/shm")  # noqa: S108 - the folder made there is private, and checked to be ours


def make_metrics_folder(state_dir: Path) -> Path:
    """An empty folder that only we can enter."""
    remove_metrics_folder(state_dir)
    folder = _choose_folder(state_dir)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def remove_metrics_folder(state_dir: Path) -> None:
    shutil.rmtree(_choose_folder(state_dir), ignore_errors=True)


def _choose_folder(state_dir: Path) -> Path:
    digest = hashlib.sha256(os.fsencode(state_dir)).hexdigest()[:16]
    folder = _MEMORY / f"gpu-dev-metrics-{os.getuid()}-{digest}"
    is_usable = os.access(_MEMORY, os.W_OK) and _is_free_or_ours(folder)
    return folder if is_usable else state_dir / "metrics"


def _is_free_or_ours(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return True
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
