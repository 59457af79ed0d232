"""Listing and measuring a directory tree, for people to read."""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from gpudev.adapters.local.trees.cursor import Cursor
from gpudev.domain.names import make_printable
from gpudev.domain.volume import FileListing
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say

MOST_LISTED = 5000
_LONGEST_PATH = 1000
"""Of what is shown: a listing of paths without a limit would be without a limit itself."""
_BLOCK = 512


class _File(NamedTuple):
    path: str
    size: int
    changed: float


@dataclass(slots=True)
class _Total:
    files: int = 0
    blocks: int = 0


@dataclass(slots=True)
class _Level:
    path: str
    folders: list[str] = field(default_factory=list)


def list_tree(tree: Path) -> FileListing:
    """Size, date and path of each file, in order; how many more there are where it gets long."""
    total = _Total()
    first = heapq.nsmallest(MOST_LISTED, _walk(tree, total))
    lines = [f"{file.size:>14,}  {_describe_time(file.changed)}  {file.path}" for file in first]
    if total.files > MOST_LISTED:
        lines.append(say(fact("listing_cut", count=total.files - MOST_LISTED)))
    return FileListing("\n".join(lines), total.blocks * _BLOCK)


def _walk(tree: Path, total: _Total) -> Iterator[_File]:
    """Every file; a folder that its owner has closed is passed over."""
    with Cursor(tree) as cursor:
        levels = [_Level("")]
        yield from _list_folder(cursor.descriptor, levels[-1], total)
        while levels:
            level = levels[-1]
            if not level.folders:
                levels.pop()
                if levels:
                    cursor.ascend()
                continue
            name = level.folders.pop()
            try:
                cursor.descend(name)
            except (PermissionError, FileNotFoundError, NotADirectoryError):
                continue
            levels.append(_Level(make_printable(f"{level.path}{name}/", _LONGEST_PATH)))
            yield from _list_folder(cursor.descriptor, levels[-1], total)


def _list_folder(folder: int, level: _Level, total: _Total) -> Iterator[_File]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                level.folders.append(entry.name)
                continue
            try:
                info = entry.stat(follow_symlinks=False)
            except (FileNotFoundError, PermissionError):
                continue
            total.files += 1
            total.blocks += info.st_blocks
            yield _File(
                make_printable(f"{level.path}{entry.name}", _LONGEST_PATH), info.st_size, info.st_mtime
            )


def _describe_time(seconds: float) -> str:
    """A file may say that it was changed in a year that no calendar has."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return f"{'?':<16}"
