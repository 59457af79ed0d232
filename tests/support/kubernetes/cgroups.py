"""The cgroups of a node: a subtree of its own, since a kubelet removes the pods that it does not know."""

from __future__ import annotations

import os
import time
from pathlib import Path

_MOUNTED_AT = Path("/sys/fs/cgroup")
_SECONDS = 10.0


def make_cgroups(name: str) -> None:
    for hierarchy in _hierarchies():
        (hierarchy / name).mkdir(parents=True, exist_ok=True)


def list_cgroups(name: str) -> tuple[Path, ...]:
    return tuple(hierarchy / name for hierarchy in _hierarchies() if (hierarchy / name).exists())


def remove_cgroups(name: str) -> None:
    """With everything below; the processes in there have ended."""
    for top in list_cgroups(name):
        for folder, _, _ in os.walk(top, topdown=False):
            _remove(Path(folder))


def _remove(folder: Path) -> None:
    """The kernel calls a cgroup busy for a moment after its last process."""
    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


def _hierarchies() -> list[Path]:
    """One in version 2, one a controller in version 1."""
    if (_MOUNTED_AT / "cgroup.controllers").exists():
        return [_MOUNTED_AT]
    return [path for path in _MOUNTED_AT.iterdir() if path.is_mount()]
