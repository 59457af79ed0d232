"""The directories that are a dev server's own: its home and its workspace."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path

_SKELETON = (".profile", ".bashrc")


def prepare_home(home: Path, owner: int | None) -> None:
    """Make the home if it is new, with a minimal start-up file or two. What is there is left alone."""
    is_new = not home.exists()
    _make_directory(home, owner)
    if is_new:
        for name in _SKELETON:
            _copy_skeleton(name, home / name, owner)


def prepare_workspace(workspace: Path, owner: int | None) -> None:
    _make_directory(workspace, owner)


def _make_directory(directory: Path, owner: int | None) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if owner is not None:
        os.chown(directory, owner, owner)


def _copy_skeleton(name: str, target: Path, owner: int | None) -> None:
    source = resources.files("gpudev.adapters.local.devserver") / "skeleton" / f"dot{name}"
    target.write_bytes(source.read_bytes())
    if owner is not None:
        os.chown(target, owner, owner)
