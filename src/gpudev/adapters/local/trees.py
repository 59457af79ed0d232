"""Whole directory trees: copy, list and remove them.

Copies are made by `cp`, which shares the blocks of files where the file system can (reflinks) and keeps
owners, modes, links, holes and extended attributes.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from gpudev.domain.volume import FileListing

MOST_LISTED = 5000
_READ_FILE = stat.S_IRUSR
_READ_FOLDER = stat.S_IRUSR | stat.S_IXUSR


class CopyFailed(OSError):
    """`cp` had something to say."""


def copy_tree(source: Path, target: Path) -> None:
    """Copy a directory to a name that is not there yet, and see it onto the disk."""
    if os.geteuid() != 0:
        _open_to_owner(source)
    _run("cp", "--archive", "--reflink=auto", "--no-target-directory", "--", str(source), str(target))


def sync_tree(tree: Path) -> None:
    """See everything of its file system onto the disk."""
    _run("sync", "--file-system", "--", str(tree))


def remove_tree(tree: Path) -> None:
    """Remove everything, also below directories that their owner has closed to everybody."""
    for directory, names, _ in os.walk(tree):
        for path in (Path(directory, name) for name in names):
            if not path.is_symlink():
                path.chmod(0o700)
    shutil.rmtree(tree)


def list_tree(tree: Path) -> FileListing:
    """Size, date and path of each file, in order; how many more there are where it gets long."""
    lines: list[str] = []
    count = used = 0
    for path, info in sorted(_walk(tree)):
        count += 1
        used += info.st_blocks * 512
        if count <= MOST_LISTED:
            changed = datetime.fromtimestamp(info.st_mtime, UTC)
            lines.append(f"{info.st_size:>14,}  {changed:%Y-%m-%d %H:%M}  {path}")
    if count > MOST_LISTED:
        lines.append(f"... and {count - MOST_LISTED:,} more")
    return FileListing("\n".join(lines), used)


def _walk(tree: Path) -> Iterator[tuple[str, os.stat_result]]:
    for directory, _, names in os.walk(tree):
        for name in names:
            path = Path(directory, name)
            shown = str(path.relative_to(tree)).encode(errors="replace").decode()
            yield shown, path.lstat()


def _open_to_owner(tree: Path) -> None:
    """What its owner has closed to himself cannot be copied: he may read his own files again."""
    for directory, names, files in os.walk(tree):
        for name in names:
            _allow(Path(directory, name), _READ_FOLDER)
        for name in files:
            _allow(Path(directory, name), _READ_FILE)


def _allow(path: Path, wanted: int) -> None:
    mode = path.lstat().st_mode
    if not stat.S_ISLNK(mode) and mode & wanted != wanted:
        path.chmod(stat.S_IMODE(mode) | wanted)


def _run(*command: str) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode != 0:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise CopyFailed(words[-1] if words else f"{command[0]} failed.")
