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


PARTS = tuple(map(read_script, ("runner", "watch", "stop", "stopper")))


def start(folder: Path, command: str, grace: int = 60, place: str = "run") -> None:
    assert run(folder, "start", place, "files", command, str(grace), *PARTS).returncode == 0


def stop(folder: Path, why: str = "user", grace: int = 60) -> None:
    assert run(folder, "stop", "run", why, str(grace), read_script("stopper")).returncode == 0


def follow(folder: Path, offset: int = 0, seconds: str = "") -> subprocess.CompletedProcess[bytes]:
    return run(folder, "follow", "run", str(offset), seconds)


def wait_for_output(folder: Path, text: str) -> None:
    wait_for(lambda: (folder / "run" / "output").read_text() == text, f"the output {text!r}")


@pytest.mark.parametrize("name", NAMES)
def test_a_script_has_nothing_that_shellcheck_finds(name: str) -> None:
    done = subprocess.run(
        [SHELLCHECK, "-s", "sh", "-"], input=read_script(name).encode(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout.decode()


def test_a_command_leaves_its_output_and_its_exit_code(tmp_path: Path) -> None:
    start(tmp_path, "pwd; echo words >&2; exit 7")
    done = follow(tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'files'}\nwords\n".encode())
    assert (tmp_path / "run" / "code").read_text() == "7\n"


def test_a_second_start_starts_nothing(tmp_path: Path) -> None:
    for _ in range(2):
        start(tmp_path, "echo once >> ../count")
        assert follow(tmp_path).returncode == 0
    assert (tmp_path / "count").read_text() == "once\n"


@pytest.mark.parametrize("offset", [0, 3, 65_536, 100_000])
def test_output_is_followed_from_an_offset_byte_by_byte(tmp_path: Path, offset: int) -> None:
    content = bytes(range(256)) * 400
    (tmp_path / "content").write_bytes(content)
    start(tmp_path, "cat ../content")
    assert follow(tmp_path).returncode == 0
    assert follow(tmp_path, offset).stdout == content[offset:]


def test_a_command_that_ends_by_a_signal_has_the_code_of_a_shell(tmp_path: Path) -> None:
    start(tmp_path, "kill -9 $$")
    assert follow(tmp_path).returncode == 0
    assert (tmp_path / "run" / "code").read_text() == "137\n"


def test_a_command_that_is_gone_with_what_ran_it_is_noticed(tmp_path: Path) -> None:
    start(tmp_path, "echo begun; sleep 600")
    wait_for_output(tmp_path, "begun\n")
    os.killpg(int((tmp_path / "run" / "pid").read_text()), signal.SIGKILL)
    done = follow(tmp_path)
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


SAVES = "trap 'echo saved > checkpoint; exit 9' TERM; echo ready; while :; do sleep 0.05; done"
"""A command that has something to do at its end."""
STUBBORN = "trap '' TERM; echo ready; while :; do sleep 0.05; done"


def test_a_command_is_stopped_with_time_to_save(tmp_path: Path) -> None:
    start(tmp_path, SAVES)
    wait_for_output(tmp_path, "ready\n")
    stop(tmp_path)
    assert follow(tmp_path).returncode == 0
    assert (tmp_path / "files" / "checkpoint").read_text() == "saved\n"
    assert run(tmp_path, "result", "run").stdout == b"9\nuser\n"


def test_a_stop_waits_for_what_the_command_has_started(tmp_path: Path) -> None:
    """The shell ends at once; what saves is a child of it."""
    (tmp_path / "saves.sh").write_text(SAVES)
    start(tmp_path, "sh ../saves.sh; echo never")
    wait_for_output(tmp_path, "ready\n")
    stop(tmp_path)
    assert follow(tmp_path).returncode == 0
    assert (tmp_path / "files" / "checkpoint").read_text() == "saved\n"


def test_a_command_that_does_not_end_is_killed_after_the_grace(tmp_path: Path) -> None:
    start(tmp_path, STUBBORN)
    wait_for_output(tmp_path, "ready\n")
    stop(tmp_path, grace=0)
    assert follow(tmp_path).returncode == 0
    assert run(tmp_path, "result", "run").stdout == b"137\nuser\n"


def test_the_first_stop_says_why_and_one_that_is_over_is_left_alone(tmp_path: Path) -> None:
    start(tmp_path, SAVES)
    wait_for_output(tmp_path, "ready\n")
    stop(tmp_path, "time")
    stop(tmp_path, "user")
    assert follow(tmp_path).returncode == 0
    assert run(tmp_path, "result", "run").stdout == b"9\ntime\n"


def test_following_ends_when_its_seconds_are_over(tmp_path: Path) -> None:
    start(tmp_path, "echo ready; sleep 600")
    wait_for_output(tmp_path, "ready\n")
    done = follow(tmp_path, seconds="0")
    assert (done.returncode, done.stdout) == (4, b"ready\n")
    stop(tmp_path)
    assert follow(tmp_path).returncode == 0


def test_the_notice_of_the_end_stops_a_command_that_nobody_follows(tmp_path: Path) -> None:
    old = tmp_path / "WARN_EXPIRES_IN_5MIN.txt"
    old.write_text("Of the reservation before.")
    os.utime(old, (1, 1))
    start(tmp_path, SAVES, grace=120)
    wait_for_output(tmp_path, "ready\n")
    assert not (tmp_path / "run" / "stopping").exists()
    notice = tmp_path / "WARN_EXPIRES_IN_15MIN.txt"
    notice.write_text("It ends.")
    ahead = (tmp_path / "run" / "started").stat().st_mtime
    os.utime(notice, (ahead + 10, ahead - 14 * 60))
    os.utime(tmp_path / "run" / "started", (ahead, ahead - 20 * 60))
    assert follow(tmp_path).returncode == 0
    assert run(tmp_path, "result", "run").stdout == b"9\ntime\n"


def test_what_was_fetched_leaves_its_result_until_the_next_command(tmp_path: Path) -> None:
    start(tmp_path, "seq 1000", place="submit/a/run")
    wait_for((tmp_path / "submit" / "a" / "run" / "code").exists, "its end")
    (tmp_path / "submit" / "a" / "files").mkdir()
    (tmp_path / "submit" / "b" / "run").mkdir(parents=True)
    assert run(tmp_path, "fetched", "submit/a", "9").returncode == 0
    assert (tmp_path / "submit" / "a" / "run" / "output").read_bytes() == b"999\n1000\n"
    assert not (tmp_path / "submit" / "a" / "files").exists()
    start(tmp_path, "true", place="submit/c/run")
    assert sorted(path.name for path in (tmp_path / "submit").iterdir()) == ["b", "c"]


def test_the_last_lines_of_the_output_are_found(tmp_path: Path) -> None:
    assert run(tmp_path, "output", "run", "").returncode == 3
    start(tmp_path, "seq 3")
    assert follow(tmp_path).returncode == 0
    assert run(tmp_path, "output", "run", "").stdout == b"0\n"
    offset = run(tmp_path, "output", "run", "1").stdout
    assert follow(tmp_path, int(offset), "0").stdout == b"3\n"
