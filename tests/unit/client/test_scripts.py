"""The scripts that the client runs on a dev server, run by this machine's own shell."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from gpudev.client import scripts
from gpudev.client.scripts import read_script
from tests.support.machine import wait_for

SHELLCHECK = Path(sys.executable).with_name("shellcheck")
NAMES = sorted(
    entry.name.removesuffix(".sh") for entry in files(scripts).iterdir() if entry.name.endswith(".sh")
)


def run(folder: Path, name: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "SHELL": "/bin/sh"}
    command = ["sh", "-c", read_script(name), name, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=30, check=False)


def start(folder: Path, command: str) -> None:
    assert run(folder, "start", "run", "files", command, read_script("runner")).returncode == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_script_has_nothing_that_shellcheck_finds(name: str) -> None:
    done = subprocess.run(
        [SHELLCHECK, "-s", "sh", "-"], input=read_script(name).encode(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout.decode()


def test_a_command_leaves_its_output_and_its_exit_code(tmp_path: Path) -> None:
    start(tmp_path, "pwd; echo words >&2; exit 7")
    done = run(tmp_path, "follow", "run", "0")
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'files'}\nwords\n".encode())
    assert (tmp_path / "run" / "code").read_text() == "7\n"


def test_a_second_start_starts_nothing(tmp_path: Path) -> None:
    for _ in range(2):
        start(tmp_path, "echo once >> ../count")
        assert run(tmp_path, "follow", "run", "0").returncode == 0
    assert (tmp_path / "count").read_text() == "once\n"


@pytest.mark.parametrize("offset", [0, 3, 65_536, 100_000])
def test_output_is_followed_from_an_offset_byte_by_byte(tmp_path: Path, offset: int) -> None:
    content = bytes(range(256)) * 400
    (tmp_path / "content").write_bytes(content)
    start(tmp_path, "cat ../content")
    assert run(tmp_path, "follow", "run", "0").returncode == 0
    assert run(tmp_path, "follow", "run", str(offset)).stdout == content[offset:]


def test_a_command_that_ends_by_a_signal_has_the_code_of_a_shell(tmp_path: Path) -> None:
    start(tmp_path, "kill -9 $$")
    assert run(tmp_path, "follow", "run", "0").returncode == 0
    assert (tmp_path / "run" / "code").read_text() == "137\n"


def test_a_command_that_is_gone_with_what_ran_it_is_noticed(tmp_path: Path) -> None:
    start(tmp_path, "echo begun; sleep 600")
    wait_for(lambda: (tmp_path / "run" / "output").read_text() == "begun\n", "its output")
    os.killpg(int((tmp_path / "run" / "pid").read_text()), signal.SIGKILL)
    done = run(tmp_path, "follow", "run", "0")
    assert (done.returncode, done.stdout) == (3, b"begun\n")


def test_only_changes_are_sent(tmp_path: Path) -> None:
    work = tmp_path / "files"
    for name in ("same", "changed", "unwanted/new"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("old")
    (tmp_path / "mark").touch()
    wait_for(lambda: _is_later(tmp_path), "the file system's clock to move")
    (work / "changed").write_text("new")
    (work / "it's new\n").write_text("new")
    (work / "unwanted" / "new").write_text("new")
    os.utime(work / "changed", (0, 0))
    packed = run(tmp_path, "send_changes", "files", "mark", "un*", "nothing").stdout
    names = subprocess.run(["tar", "-t", "-f", "-"], input=packed, capture_output=True, check=True).stdout
    assert sorted(names.decode().split("\n")) == ["", "./changed", "./it's new\\n"]


def _is_later(folder: Path) -> bool:
    (folder / "probe").touch()
    return (folder / "probe").stat().st_ctime_ns > (folder / "mark").stat().st_ctime_ns


def test_without_its_mark_nothing_is_sent(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    assert run(tmp_path, "send_changes", "files", "mark").returncode != 0


def test_a_submission_is_forgotten_with_the_folder_around_it(tmp_path: Path) -> None:
    (tmp_path / "submit" / "a" / "run").mkdir(parents=True)
    (tmp_path / "submit" / "b").mkdir()
    assert run(tmp_path, "forget", "submit/a").returncode == 0
    assert [path.name for path in (tmp_path / "submit").iterdir()] == ["b"]
    assert run(tmp_path, "forget", "submit/b").returncode == 0
    assert list(tmp_path.iterdir()) == []
