"""Where files go that come back: beside what is here, and over nothing that was never sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudev.client.submission import arriving_in, place_results


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out" / "old").write_text("old")
    return tmp_path / "out"


def place(folder: Path, *paths: str, was_sent: bool = False) -> list[str]:
    """Lets these files arrive with the text `new`; the paths that were put aside."""
    with arriving_in(folder) as arrived:
        for path in paths:
            (arrived / path).parent.mkdir(parents=True, exist_ok=True)
            (arrived / path).write_text("new")
        placed = place_results(arrived, folder, folder / "aside", lambda _: was_sent)
    assert placed.count == len(paths)
    assert [path.name for path in folder.glob(".gpu-dev-fetch-*")] == []
    return list(placed.aside)


def test_files_replace_those_that_are_here_and_folders_are_made(folder: Path) -> None:
    assert place(folder, "old", "a/b/c") == []
    assert (folder / "old").read_text() == (folder / "a" / "b" / "c").read_text() == "new"


@pytest.mark.parametrize("path", [".env", ".aws/credentials", "sub/server.pem"])
def test_a_secret_that_was_not_sent_stays(folder: Path, path: str) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text("mine")
    assert place(folder, path) == [path]
    assert ((folder / path).read_text(), (folder / "aside" / path).read_text()) == ("mine", "new")
    assert place(folder, path, was_sent=True) == []
    assert (folder / path).read_text() == "new"


def test_no_link_is_followed_and_none_is_replaced_by_a_folder(folder: Path) -> None:
    elsewhere = folder.parent / "elsewhere"
    (folder / "link").symlink_to(elsewhere)
    assert place(folder, "link/file") == ["link/file"]
    assert list(elsewhere.iterdir()) == []


def test_what_is_in_the_way_stays(folder: Path) -> None:
    (folder / "folder").mkdir()
    assert place(folder, "folder", "old/file") == ["folder", "old/file"]
    assert (folder / "old").read_text() == "old"


def test_a_link_arrives_as_a_link(folder: Path) -> None:
    with arriving_in(folder) as arrived:
        (arrived / "link").symlink_to("/etc")
        assert place_results(arrived, folder, folder / "aside").count == 1
    assert (folder / "link").is_symlink()
