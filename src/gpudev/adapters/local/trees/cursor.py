"""A position in a directory tree, held by one descriptor at any depth.

Nothing below the root is addressed by a path: a path may be longer than the kernel accepts, and a part of it
may be replaced by a link. The way back up is `..`, and it is checked to be the folder that we came from.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from gpudev.texts.fact import Fact, fact
from gpudev.texts.sentences import say

READ = stat.S_IRUSR | stat.S_IXUSR
CHANGE = stat.S_IRWXU
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class TreeError(OSError):
    """What we notice ourselves to be wrong with a tree: `told`, with a number of the kernel's."""

    def __init__(self, number: int, told: Fact) -> None:
        super().__init__(number, say(told))
        self.told = told


class Cursor:
    """Starts at the root of the tree. `OSError` if a folder cannot be entered, or moved meanwhile."""

    def __init__(self, root: Path, needs: int = 0) -> None:
        """`needs`: permissions that are given to the owner of each folder where they are missing."""
        self._needs = 0 if os.geteuid() == 0 else needs
        self._above: list[tuple[int, int]] = []
        self.descriptor = self._open(str(root), None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.descriptor)

    def descend(self, name: str) -> None:
        below = self._open(name, self.descriptor)
        self._above.append(_identify(self.descriptor))
        os.close(self.descriptor)
        self.descriptor = below

    def ascend(self, finish: Callable[[int], None] | None = None) -> None:
        """Back to the folder above. `finish` gets the descriptor of the folder that is left."""
        parent = os.open("..", _OPEN, dir_fd=self.descriptor)
        if _identify(parent) != self._above[-1]:
            os.close(parent)
            raise TreeError(errno.ESTALE, fact("folder_moved_meanwhile"))
        self._above.pop()
        left, self.descriptor = self.descriptor, parent
        try:
            if finish is not None:
                finish(left)
        finally:
            os.close(left)

    def _open(self, name: str, directory: int | None) -> int:
        try:
            descriptor = os.open(name, _OPEN, dir_fd=directory)
        except PermissionError:
            if not self._needs:
                raise
            permit(name, directory, self._needs)
            descriptor = os.open(name, _OPEN, dir_fd=directory)
        mode = os.fstat(descriptor).st_mode
        if mode & self._needs != self._needs:
            os.fchmod(descriptor, stat.S_IMODE(mode) | self._needs)
        return descriptor


def permit(name: str, directory: int | None, needs: int) -> None:
    """Give the owner these permissions on a file or folder; a link is left alone."""
    handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISLNK(mode):
            # The descriptor means this very file, and `fchmod` does not take one of its kind.
            Path(f"/proc/self/fd/{handle}").chmod(stat.S_IMODE(mode) | needs)
    finally:
        os.close(handle)


def _identify(descriptor: int) -> tuple[int, int]:
    info = os.fstat(descriptor)
    return info.st_dev, info.st_ino
