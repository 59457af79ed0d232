"""Copying a directory tree: owners, modes, times, links, holes and extended attributes included.

Blocks are shared where the file system can do that (reflinks).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from gpudev.adapters.local.processes.linux import sync_file_system
from gpudev.adapters.local.trees.cursor import READ, Cursor, TreeError, permit
from gpudev.adapters.local.trees.removal import remove_tree
from gpudev.texts.fact import fact

_FICLONE = 0x40049409
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 8 << 20
_NOT_BETWEEN_THESE = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ETXTBSY}


def copy_tree(source: Path, target: Path) -> None:
    """Copy a directory to a name that is not there yet. A copy that fails leaves a part of it behind."""
    target.mkdir(mode=0o700)
    with Cursor(source, READ) as reading, Cursor(target) as writing, _links_beside(target) as links:
        copier = _Copier(links)
        levels = [copier.copy_entries(reading.descriptor, writing.descriptor)]
        while levels:
            if levels[-1]:
                name = levels[-1].pop()
                os.mkdir(name, 0o700, dir_fd=writing.descriptor)
                reading.descend(name)
                writing.descend(name)
                levels.append(copier.copy_entries(reading.descriptor, writing.descriptor))
            else:
                levels.pop()
                _leave(reading, writing, is_root=not levels)


def _leave(reading: Cursor, writing: Cursor, *, is_root: bool) -> None:
    """Only now does a folder get its mode, which may be closed to us, and its times, which entries change."""
    info = os.fstat(reading.descriptor)
    _copy_attributes(reading.descriptor, writing.descriptor)
    if is_root:
        _set_status(writing.descriptor, info)
    else:
        reading.ascend()
        writing.ascend(lambda left: _set_status(left, info))


def sync_tree(tree: Path) -> None:
    """See everything of its file system onto the disk."""
    descriptor = os.open(tree, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync_file_system(descriptor)
    finally:
        os.close(descriptor)


class _Copier:
    """Copies what is in one folder. What it remembers is of one tree."""

    def __init__(self, links: int) -> None:
        self._links = links
        """A folder in which each file that has several names has another one: its identity."""
        self._can_share_blocks = True

    def copy_entries(self, source: int, target: int) -> list[str]:
        """Everything but folders; the names of these."""
        folders: list[str] = []
        with os.scandir(source) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                else:
                    self._copy_entry(entry, source, target)
        return folders

    def _copy_entry(self, entry: os.DirEntry[str], source: int, target: int) -> None:
        info = entry.stat(follow_symlinks=False)
        identity = f"{info.st_dev}-{info.st_ino}"
        has_names = info.st_nlink > 1
        if has_names and self._link_again(identity, entry.name, target):
            return
        if stat.S_ISREG(info.st_mode):
            self._copy_file(entry.name, source, target)
        elif stat.S_ISLNK(info.st_mode):
            os.symlink(os.readlink(entry.name, dir_fd=source), entry.name, dir_fd=target)
            _set_status_of_link(entry.name, target, info)
        else:
            os.mknod(entry.name, info.st_mode, info.st_rdev, dir_fd=target)
            _set_status_of_link(entry.name, target, info)
            os.chmod(entry.name, stat.S_IMODE(info.st_mode), dir_fd=target)
        if has_names:
            os.link(entry.name, identity, src_dir_fd=target, dst_dir_fd=self._links, follow_symlinks=False)

    def _link_again(self, identity: str, name: str, target: int) -> bool:
        """Whether the file was there under another name, and now has this one, too."""
        try:
            os.link(identity, name, src_dir_fd=self._links, dst_dir_fd=target, follow_symlinks=False)
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno != errno.EMLINK:
                raise
            # No more names: from here on it is another file with the same content.
            os.unlink(identity, dir_fd=self._links)
            return False
        return True

    def _copy_file(self, name: str, source: int, target: int) -> None:
        with _opened(_open_file(name, source)) as reading:
            info = os.fstat(reading)
            if not stat.S_ISREG(info.st_mode):
                raise TreeError(errno.ESTALE, fact("file_replaced_meanwhile"))
            with _opened(os.open(name, _CREATE, 0o600, dir_fd=target)) as writing:
                if not self._share_blocks(reading, writing):
                    _copy_bytes(reading, writing, info.st_size)
                _copy_attributes(reading, writing)
                _set_status(writing, info)

    def _share_blocks(self, reading: int, writing: int) -> bool:
        if self._can_share_blocks:
            try:
                fcntl.ioctl(writing, _FICLONE, reading)
            except OSError:
                self._can_share_blocks = False
        return self._can_share_blocks


def _open_file(name: str, folder: int) -> int:
    """What its owner has closed to himself cannot be copied: he may read his own files again."""
    try:
        return os.open(name, _READ, dir_fd=folder)
    except PermissionError:
        if os.geteuid() == 0:
            raise
    permit(name, folder, stat.S_IRUSR)
    return os.open(name, _READ, dir_fd=folder)


def _copy_bytes(reading: int, writing: int, size: int) -> None:
    """Only the parts that are not holes."""
    end = 0
    while end < size:
        try:
            start = os.lseek(reading, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            break
        end = min(size, os.lseek(reading, start, os.SEEK_HOLE))
        _copy_range(reading, writing, start, end)
    os.ftruncate(writing, size)


def _copy_range(reading: int, writing: int, start: int, end: int) -> None:
    while start < end:
        try:
            copied = os.copy_file_range(reading, writing, min(_CHUNK, end - start), start, start)
        except OSError as error:
            if error.errno not in _NOT_BETWEEN_THESE:
                raise
            copied = os.pwrite(writing, os.pread(reading, min(_CHUNK, end - start), start), start)
        if not copied:
            # It has become shorter since.
            return
        start += copied


def _copy_attributes(reading: int, writing: int) -> None:
    """Best effort, as `cp --archive` does: the target may not support them, or we may not set them."""
    with contextlib.suppress(OSError):
        for name in os.listxattr(reading):
            with contextlib.suppress(OSError):
                os.setxattr(writing, name, os.getxattr(reading, name))


def _set_status(descriptor: int, info: os.stat_result) -> None:
    if os.geteuid() == 0:
        os.fchown(descriptor, info.st_uid, info.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(info.st_mode))
    os.utime(descriptor, ns=(info.st_atime_ns, info.st_mtime_ns))


def _set_status_of_link(name: str, folder: int, info: os.stat_result) -> None:
    if os.geteuid() == 0:
        os.chown(name, info.st_uid, info.st_gid, dir_fd=folder, follow_symlinks=False)
    os.utime(name, ns=(info.st_atime_ns, info.st_mtime_ns), dir_fd=folder, follow_symlinks=False)


@contextlib.contextmanager
def _opened(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _links_beside(target: Path) -> Iterator[int]:
    """A folder beside the copy, for as long as it is made."""
    folder = target.with_name(f".links-{target.name}")
    folder.mkdir(mode=0o700)
    with _opened(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as links:
        yield links
    remove_tree(folder)
