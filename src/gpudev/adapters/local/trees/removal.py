"""Removing a directory tree."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from gpudev.adapters.local.trees.cursor import CHANGE, Cursor

_FOLDERS_AT_ONCE = 1000
"""The names kept of one folder, which may have millions of them."""


@dataclass(slots=True)
class _Level:
    name: str
    folders: list[str] = field(default_factory=list)
    """Folders in it that are still to be emptied."""
    stuck: dict[str, OSError] = field(default_factory=dict)
    """What could not be removed from it."""


def remove_tree(tree: Path) -> None:
    """Remove everything, also below folders that their owner has closed.

    What cannot be removed stays, with the folders above it; after the rest the first error is raised.
    """
    with Cursor(tree, CHANGE) as cursor:
        stuck = _empty(cursor)
    for error in stuck.values():
        raise error
    tree.rmdir()


def _empty(cursor: Cursor) -> dict[str, OSError]:
    root = _Level("")
    levels = [root]
    while levels:
        level = levels[-1]
        if not level.folders:
            level.folders = _remove_entries(cursor.descriptor, level)
        if level.folders:
            _enter(cursor, levels)
        else:
            _leave(cursor, levels)
    return root.stuck


def _enter(cursor: Cursor, levels: list[_Level]) -> None:
    level = levels[-1]
    name = level.folders.pop()
    try:
        cursor.descend(name)
    except OSError as error:
        level.stuck[name] = error
    else:
        levels.append(_Level(name))


def _leave(cursor: Cursor, levels: list[_Level]) -> None:
    done = levels.pop()
    if not levels:
        return
    cursor.ascend()
    try:
        os.rmdir(done.name, dir_fd=cursor.descriptor)
    except OSError as error:
        levels[-1].stuck[done.name] = next(iter(done.stuck.values()), error)


def _remove_entries(folder: int, level: _Level) -> list[str]:
    """Remove files and empty folders; some of the folders that are not empty."""
    full: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name in level.stuck:
                continue
            try:
                if entry.is_dir(follow_symlinks=False):
                    full.append(entry.name)
                else:
                    os.unlink(entry.name, dir_fd=folder)
            except FileNotFoundError:
                continue
            except OSError as error:
                level.stuck[entry.name] = error
            if len(full) >= _FOLDERS_AT_ONCE:
                break
    return full
