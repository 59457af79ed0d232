"""Our reading of `.gitignore` against that of `git` itself, on generated folders."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gpudev.client.ignore_rules import parse_rules
from gpudev.client.manifest import GIT_RULES, make_manifest

NAMES = [b"a", b"b", b"ab", b"a b", b"a.o", b"b.o", b"#c", b"!d", b"e ", b"d\xff", b"foo", b"foobar"]
LETTERS = st.sampled_from(
    (
        *b"a b o . * ** **/ /** ? / \\ ! # - [ ] [ab] [!a] [a-c []a] [\\]b] [[:alpha:]] foo".split(),
        b" ",
        b"\r",
        b"\xff",
    )
)
LINES = st.lists(LETTERS, max_size=6).map(b"".join)
RULES = st.lists(LINES, max_size=5).map(b"\n".join)
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(b"/".join)


@pytest.fixture(scope="module")
def git() -> str:
    found = shutil.which("git")
    if found is None:
        pytest.skip("git is not installed")
    return found


def write(root: Path, path: bytes, content: bytes = b"") -> None:
    """What is in the way of a file, or of a folder around it, stays."""
    file = root / os.fsdecode(path)
    with contextlib.suppress(FileExistsError, NotADirectoryError, IsADirectoryError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("xb") as opened:
            opened.write(content)


def list_files(root: Path) -> set[bytes]:
    found = {os.fsencode(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()}
    return {path for path in found if not path.startswith(b".git/")}


def list_ignored(git: str, root: Path, paths: set[bytes]) -> set[bytes]:
    """By the word of `git`."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        [git, "check-ignore", "--no-index", "-z", "--stdin"],
        cwd=root,
        env=environment,
        input=b"".join(path + b"\0" for path in sorted(paths)),
        capture_output=True,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stderr
    return set(done.stdout.split(b"\0")) - {b""}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    files=st.sets(PATHS, min_size=1, max_size=10),
    rules=st.dictionaries(st.sampled_from([b"", b"a", b"foo", b"a/b"]), RULES, min_size=1, max_size=3),
    excluded=RULES,
)
@example(files={b"a/foo/b", b"a/foobar"}, rules={b"": b"a/foo**\n"}, excluded=b"")
@example(files={b"a/b/a.o", b"a/b/b.o"}, rules={b"": b"*.o\n", b"a": b"!b/a.o\n"}, excluded=b"a\n!a\n")
@example(files={b"e ", b"#c", b"!d", b"d\xff"}, rules={b"": b"e\\ \n\\#c\n\\!d\nd?\n"}, excluded=b"")
@example(files={b"a/b/foo", b"foo/a/b"}, rules={b"": b"/a/**/foo\n**/a/b/\nfoo/*\n!foo/a\n"}, excluded=b"")
def test_what_git_ignores_is_left_out(
    git: str, files: set[bytes], rules: dict[bytes, bytes], excluded: bytes
) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        write(root, b".git/HEAD", b"ref: refs/heads/main\n")
        write(root, b".git/objects/keep")
        write(root, b".git/refs/keep")
        write(root, b".git/info/exclude", excluded)
        for path in sorted(files):
            write(root, path)
        for place, content in rules.items():
            write(root, b"/".join(filter(None, (place, b".gitignore"))), content)
        paths = list_files(root)
        sent = {os.fsencode(entry.path) for entry in make_manifest(root).files}
        assert paths - sent == list_ignored(git, root, paths)


@pytest.mark.parametrize("content", [b"\xef\xbb\xbfa\n", b"a\r\n", b"a", b"a  \n", b"# b\n\na\n"])
def test_lines_are_read_as_git_reads_them(content: bytes) -> None:
    rule = parse_rules(content).find(b"x/a", is_folder=False)
    assert rule is not None


def test_a_folder_outside_a_repository_has_its_own_rules(tmp_path: Path) -> None:
    (tmp_path / GIT_RULES).write_text("*.log\n")
    (tmp_path / "a.log").touch()
    (tmp_path / "a.txt").touch()
    assert [entry.path for entry in make_manifest(tmp_path).files] == [GIT_RULES, "a.txt"]


def test_a_folder_in_a_repository_has_the_rules_of_those_above(tmp_path: Path) -> None:
    inner = tmp_path / "part" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / ".git" / "info").mkdir(parents=True)
    (tmp_path / ".git" / "info" / "exclude").write_text("/part/inner/c\n")
    (tmp_path / GIT_RULES).write_text("/part/inner/a\n")
    (tmp_path / "part" / GIT_RULES).write_text("b\n")
    for name in "abcd":
        (inner / name).touch()
    assert [entry.path for entry in make_manifest(inner).files] == ["d"]


def test_a_worktree_has_the_list_of_its_repository(tmp_path: Path, git: str) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@localhost",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@localhost",
    }
    for words in (
        ["init", "-q", "main"],
        ["-C", "main", "commit", "-q", "--allow-empty", "-m", "first"],
        ["-C", "main", "worktree", "add", "-q", "../other"],
    ):
        subprocess.run([git, *words], cwd=tmp_path, env=environment, check=True, capture_output=True)
    (tmp_path / "main" / ".git" / "info" / "exclude").write_text("private\n")
    for name in ("private", "public"):
        (tmp_path / "other" / name).touch()
    assert [entry.path for entry in make_manifest(tmp_path / "other").files] == ["public"]
