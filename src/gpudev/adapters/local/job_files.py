"""What the runner of `gpu-dev submit` left in the home of a dev server, read from outside it.

The home belongs to somebody else, who may put anything there: links, pipes, huge files. Every part of the
path is opened through the one before it, nothing is followed, and little is read.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from gpudev.domain.job import MAX_OUTPUT, Job, read_job

_MOST = 64
"""Bytes of a file that holds one word."""


def find_job(home: Path, id8: str) -> Job | None:
    """None if no command was started for this reservation."""
    try:
        with _opened(home, "submit", id8, "run") as run:
            if _exists(run, "output"):
                return read_job(
                    _read(run, "code"),
                    _read(run, "why"),
                    _read(run, "output", MAX_OUTPUT) or b"",
                    is_fetched=_exists(run, "fetched"),
                )
    except OSError:
        # Not there, or not what it should be.
        pass
    return None


@contextlib.contextmanager
def _opened(home: Path, *parts: str) -> Iterator[int]:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    descriptor = os.open(home, flags)
    try:
        for part in parts:
            below = os.open(part, flags | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def _exists(run: int, name: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(name, dir_fd=run, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _read(run: int, name: str, most: int = _MOST) -> bytes | None:
    """The end of a plain file; None for anything else."""
    if not _exists(run, name):
        return None
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=run)
    except OSError:
        return None
    try:
        size = os.fstat(descriptor).st_size
        return os.pread(descriptor, most, max(0, size - most))
    finally:
        os.close(descriptor)
