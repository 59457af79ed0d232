"""The notices in the home of a dev server, written from outside it.

The home belongs to somebody else, who may put anything there under our names. So nothing is followed and
nothing is written into: a file is made under a name of its own and moved to its place.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpudev.domain.notices import NOTICE_FILE, Notice

_FRESH = ".gpu-dev-notice"
_MAX_BYTES = 4096
"""Longer than any notice: what is longer is not one of ours."""


class NoticeFolder:
    """The notices of one home. `OSError` if it is not there, is full or cannot be written."""

    def __init__(self, home: Path) -> None:
        self._home = home

    @property
    def home(self) -> Path:
        return self._home

    def list_new(self, notices: Sequence[Notice]) -> tuple[Notice, ...]:
        """Those that do not stand there yet, word for word."""
        with _opened(self._home) as home:
            return tuple(notice for notice in notices if _read(home, notice.file_name) != _content(notice))

    def replace(self, notices: Sequence[Notice]) -> None:
        """Let exactly these stand."""
        with _opened(self._home) as home:
            for notice in notices:
                if _read(home, notice.file_name) != _content(notice):
                    _write(home, notice)
            standing = {notice.file_name for notice in notices}
            for name in os.listdir(home):  # noqa: PTH208 - of this very folder, not of what has its name now
                if NOTICE_FILE.fullmatch(name) and name not in standing:
                    _remove(home, name)


@contextlib.contextmanager
def _opened(directory: Path) -> Iterator[int]:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _content(notice: Notice) -> bytes:
    return f"{notice.text}\n".encode()


def _read(home: int, name: str) -> bytes | None:
    """None for what is not there, or is not a plain file: a link, a pipe, a folder."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, dir_fd=home)
    except OSError:
        return None
    try:
        is_plain = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return os.read(descriptor, _MAX_BYTES) if is_plain else None
    finally:
        os.close(descriptor)


def _write(home: int, notice: Notice) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_FRESH, dir_fd=home)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(_FRESH, flags, 0o644, dir_fd=home)
    try:
        owner = os.fstat(home)
        if os.geteuid() == 0:
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        os.write(descriptor, _content(notice))
    finally:
        os.close(descriptor)
    os.rename(_FRESH, notice.file_name, src_dir_fd=home, dst_dir_fd=home)


def _remove(home: int, name: str) -> None:
    """A folder of that name is not ours and stays."""
    with contextlib.suppress(FileNotFoundError, IsADirectoryError):
        os.unlink(name, dir_fd=home)
