"""Notices to the users of a dev server, written from outside it: files in its home, lines on its terminals.

The home belongs to somebody else, who may put anything there under our names. So nothing is followed and
nothing is written into: a file is made under a name of its own and moved to its place.

A line reaches shells, tmux panes and whatever else is on a terminal there. Best effort: a terminal that is
stopped or full loses the line, and nothing waits for it.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gpudev.adapters.local.processes.identity import find_strays
from gpudev.adapters.local.record import ServerProcesses
from gpudev.adapters.local.sandbox.isolation import Isolation
from gpudev.domain.notices import NOTICE_FILE, Notice

_FRESH = ".gpu-dev-notice"
_MAX_BYTES = 4096
"""Longer than any notice: what is longer is not one of ours."""
_TERMINALS = "dev/pts"
_STANDARD_DESCRIPTORS = (0, 1, 2)


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


def write_to_terminals(name: str, processes: ServerProcesses, line: str) -> int:
    """Write the line; says how many terminals took it."""
    if processes.isolation is Isolation.BUBBLEWRAP:
        # The first process is bubblewrap's, so what it has at its root is not for users to change.
        terminals = _list_terminals(Path(f"/proc/{processes.root.pid}/root", _TERMINALS))
    else:
        terminals = _terminals_of(find_strays(name))
    text = f"\r\n{line}\r\n".encode()
    return sum(1 for terminal in sorted(terminals) if _write_line(terminal, text))


def _list_terminals(directory: Path) -> set[Path]:
    try:
        return {entry for entry in directory.iterdir() if entry.name.isdecimal()}
    except (FileNotFoundError, ProcessLookupError):
        return set()


def _terminals_of(pids: Iterable[int]) -> set[Path]:
    found: set[Path] = set()
    for pid in pids:
        for descriptor in _STANDARD_DESCRIPTORS:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
                found.add(Path(f"/proc/{pid}/fd/{descriptor}").readlink())
    return {path for path in found if path.is_relative_to(f"/{_TERMINALS}")}


def _write_line(terminal: Path, text: bytes) -> bool:
    try:
        descriptor = os.open(
            terminal, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        )
    except OSError:
        # Closed since it was listed, or hung up.
        return False
    try:
        return stat.S_ISCHR(os.fstat(descriptor).st_mode) and os.write(descriptor, text) == len(text)
    except OSError:
        return False
    finally:
        os.close(descriptor)
