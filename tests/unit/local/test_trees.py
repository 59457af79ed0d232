"""Trees as users may make them: deeper than any path, with any bytes for names, closed, linked."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from gpudev.adapters.local.disk_folders import DiskFolders
from gpudev.adapters.local.trees import file_listing
from gpudev.adapters.local.trees.copy import copy_tree
from gpudev.adapters.local.trees.cursor import Cursor
from gpudev.adapters.local.trees.file_listing import list_tree
from gpudev.adapters.local.trees.removal import remove_tree
from gpudev.domain.disk import SnapshotId, VolumeId
from gpudev.domain.volume import ObservedSnapshot, ObservedVolume, SnapshotPhase
from tests.support.reservations import NOON

DEPTHS = [1, 10_000]


def nest(root: Path, depth: int, name: str = "folder") -> None:
    """That many folders, each in the one before, and a file in the last."""
    root.mkdir(exist_ok=True)
    with Cursor(root) as cursor:
        for _ in range(depth):
            os.mkdir(name, dir_fd=cursor.descriptor)
            cursor.descend(name)
        file = os.open("bottom", os.O_WRONLY | os.O_CREAT, dir_fd=cursor.descriptor)
        os.write(file, b"words")
        os.close(file)


def read_bottom(root: Path, depth: int, name: str = "folder") -> bytes:
    with Cursor(root) as cursor:
        for _ in range(depth):
            cursor.descend(name)
        file = os.open("bottom", os.O_RDONLY, dir_fd=cursor.descriptor)
        try:
            return os.read(file, 100)
        finally:
            os.close(file)


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where possible, and gone afterwards: few programs can remove what is in it."""
    memory = "/dev/shm"  # noqa: S108 - the folder made there is private
    folder = Path(mkdtemp(prefix="gpu-dev-trees-", dir=memory if os.access(memory, os.W_OK) else None))
    yield folder
    remove_tree(folder)


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_tree_of_any_depth_is_copied_listed_and_removed(folder: Path, depth: int) -> None:
    source, target = folder / "source", folder / "target"
    nest(source, depth)
    copy_tree(source, target)
    assert read_bottom(target, depth) == b"words"
    listed = list_tree(target)
    assert len(listed.text.splitlines()) == 1
    assert listed.used_bytes > 0
    for tree in (source, target):
        remove_tree(tree)
    assert list(folder.iterdir()) == []


def test_a_copy_is_like_its_source_in_everything(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir(mode=0o750)
    odd = source / os.fsdecode(b"\xff\xfe name\n")
    odd.write_bytes(b"x" * 70_000)
    odd.chmod(0o640)
    (source / "same").hardlink_to(odd)
    (source / "sub").mkdir()
    (source / "sub" / "same").hardlink_to(odd)
    (source / "link").symlink_to("/etc/passwd")
    (source / "loop").symlink_to(".")
    os.mkfifo(source / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(source / "socket"))
    with (source / "holes").open("wb") as file:
        file.truncate(1 << 30)
        file.seek(1 << 29)
        file.write(b"middle")
    (source / "empty").touch()
    os.utime(odd, ns=(1, 123_456_789))
    os.utime(source / "sub", ns=(1, 987_654_321))
    try:
        os.setxattr(source / "empty", "user.note", b"\x00\xff")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    copy_tree(source, target)
    names = [path.relative_to(source) for path in sorted(source.rglob("*"))]
    assert [path.relative_to(target) for path in sorted(target.rglob("*"))] == names
    for name in names:
        before, after = (source / name).lstat(), (target / name).lstat()
        assert (after.st_mode, after.st_size) == (before.st_mode, before.st_size), name
        assert (after.st_mtime_ns, after.st_nlink) == (before.st_mtime_ns, before.st_nlink), name
        if stat.S_ISREG(before.st_mode) and name.name != "holes":
            assert (target / name).read_bytes() == (source / name).read_bytes()
    assert (target / "link").readlink() == Path("/etc/passwd")
    assert (target / "holes").stat().st_blocks * 512 < 1 << 20
    with (target / "holes").open("rb") as file:
        file.seek(1 << 29)
        assert file.read(6) == b"middle"
    assert os.getxattr(target / "empty", "user.note") == b"\x00\xff"
    assert stat.S_IMODE(target.stat().st_mode) == 0o750


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside, tree = tmp_path / "outside", tmp_path / "tree"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    tree.mkdir()
    (tree / "folder").symlink_to(outside)
    (tree / "up").symlink_to("..")
    assert "kept" not in list_tree(tree).text
    remove_tree(tree)
    assert (outside / "kept").read_text() == "kept"
    (tmp_path / "instead").symlink_to(outside)
    with pytest.raises(OSError):  # noqa: PT011 - a link in place of the tree, whatever the kernel calls it
        remove_tree(tmp_path / "instead")
    assert (outside / "kept").read_text() == "kept"


def test_a_folder_that_is_moved_away_meanwhile_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "tree" / "sub").mkdir(parents=True)
    with Cursor(tmp_path / "tree") as cursor:
        cursor.descend("sub")
        (tmp_path / "tree" / "sub").rename(tmp_path / "sub")
        with pytest.raises(OSError, match="moved"):
            cursor.ascend()


def test_what_its_owner_has_closed_is_copied_and_removed(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "closed" / "inner").mkdir(parents=True)
    (source / "closed" / "inner" / "secret").write_text("words")
    for path in (source / "closed" / "inner" / "secret", source / "closed" / "inner", source / "closed"):
        path.chmod(0)
    copy_tree(source, tmp_path / "target")
    assert list_tree(source) is not None
    for tree in (source, tmp_path / "target"):
        remove_tree(tree)
    assert list(tmp_path.iterdir()) == []


def test_a_removal_goes_on_after_what_it_cannot_remove(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / "tree" / name / "sub").mkdir(parents=True)
        (tmp_path / "tree" / name / "sub" / f"file-{name}").touch()
    really_unlink = os.unlink

    def unlink(name: str, *, dir_fd: int) -> None:
        if name == "file-b":
            raise PermissionError(1, "Operation not permitted")
        really_unlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", unlink)
    with pytest.raises(PermissionError):
        remove_tree(tmp_path / "tree")
    left = [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))]
    assert left == ["tree", "tree/b", "tree/b/sub", "tree/b/sub/file-b"]


def test_a_listing_is_in_order_and_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_listing, "MOST_LISTED", 3)
    for name in ("b", "a", "d", "c", "e"):
        (tmp_path / name).touch()
    lines = list_tree(tmp_path).text.splitlines()
    assert [line.split()[-1] for line in lines[:3]] == ["a", "b", "c"]
    assert lines[3] == "... and 2 more"


def test_a_time_that_no_calendar_has_is_listed(tmp_path: Path) -> None:
    (tmp_path / "future").touch()
    os.utime(tmp_path / "future", (0, 2**33))
    assert "2242-03-16" in list_tree(tmp_path).text
    assert "?" in file_listing._describe_time(1e18)


def make_snapshot(token: str) -> ObservedSnapshot:
    return ObservedSnapshot(
        SnapshotId(f"snap-{token}"), VolumeId("vol-1"), None, SnapshotPhase.COMPLETED, NOON, token=token
    )


def test_a_copy_that_fails_leaves_nothing_behind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = DiskFolders(folder, durable=False)
    folders.prepare()
    folders.make_volume(ObservedVolume(VolumeId("vol-1"), None, 10, NOON))
    nest(folders.volumes / "vol-1" / "home", 2100)

    def fail(_name: object, *_: object, **__: object) -> None:
        raise RecursionError

    with monkeypatch.context() as patched:
        patched.setattr(os, "utime", fail)
        with pytest.raises(RecursionError):
            folders.make_snapshot(make_snapshot("1"))
    assert list(folders.snapshots.iterdir()) == []
    folders.make_snapshot(make_snapshot("2"))
    assert [entry.name for entry in folders.snapshots.iterdir()] == ["snap-2"]
    assert read_bottom(folders.snapshots / "snap-2" / "home", 2100) == b"words"


def test_what_is_being_made_is_not_left_over(tmp_path: Path) -> None:
    folders = DiskFolders(tmp_path, durable=False)
    folders.prepare()
    for name in (".making-a", ".making-b", ".leaving-c", "vol-1"):
        (folders.volumes / name).mkdir()
    folders.in_work.add(".making-b")
    assert sorted(path.name for path in folders.list_leftovers()) == [".leaving-c", ".making-a"]
