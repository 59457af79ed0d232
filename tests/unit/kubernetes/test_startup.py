"""The scripts that start a dev server, run by this machine's own shell."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from gpudev.adapters.kubernetes.script_reports import read_job_report, read_listing
from gpudev.adapters.kubernetes.startup import START, startup_digest, startup_files
from gpudev.domain.job import MAX_OUTPUT, Job
from gpudev.domain.notices import NOTICE_FILE
from gpudev.texts.vocabulary import Outcome

SCRIPTS = [name for name in startup_files() if name.endswith(".sh")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in startup_files().items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run(folder: Path, script: str, stdin: bytes = b"", **environment: str) -> bytes:
    environment = {"PATH": os.environ["PATH"], **environment}
    done = subprocess.run(
        ["sh", folder / script], input=stdin, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_one_that_a_shell_can_read(folder: Path, name: str) -> None:
    subprocess.run(["sh", "-n", folder / name], check=True)


def test_the_start_is_among_the_files_and_calls_only_those() -> None:
    called = {word for word in shlex.split(startup_files()[START], comments=True) if "$startup/" in word}
    assert {word.removeprefix("$startup/") for word in called} <= set(startup_files())


def test_another_text_is_another_version() -> None:
    assert len(startup_digest()) == 10


def environ(**variables: str) -> bytes:
    return b"".join(f"{name}={value}\0".encode() for name, value in variables.items())


@pytest.mark.parametrize(
    "value", ["plain", "two words", 'a "quote"', "back\\slash", "$HOME `id` 'x' #y", "grüße", ""]
)
def test_a_variable_comes_through_as_it_is(folder: Path, value: str) -> None:
    line = run(folder, "environment.sh", environ(NAME=value)).decode()
    word, rest = line.removesuffix("\n").split(" ", 1)
    assert word == "SetEnv"
    # sshd reads a quoted word with the two escapes that we write.
    unquoted = rest[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    assert unquoted == f"NAME={value}"


def test_what_belongs_to_process_one_or_cannot_be_said_stays_behind(folder: Path) -> None:
    given = environ(HOME="/root", KUBERNETES_SERVICE_HOST="10.0.0.1", TWO="a\nb", KEPT="1", PWD="/", LAST="2")
    assert run(folder, "environment.sh", given) == b'SetEnv "KEPT=1" "LAST=2"\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An image, as far as an account needs one; programs are this machine's."""
    if os.getuid() != 0:
        pytest.skip("Files are given to the user, which root alone can do.")
    image = tmp_path / "image"
    for name in ("etc/skel", "etc/sudoers.d", "bin", "dev/shm"):
        (image / name).mkdir(parents=True)
    (image / "bin" / "bash").touch(mode=0o755)
    (image / "etc" / "skel" / ".bashrc").write_text("# bash\n")
    (image / "etc" / "passwd").write_text("root:x:0:0::/root:/bin/sh\ndev:x:500:500::/home/x:/bin/false\n")
    (image / "etc" / "group").write_text("root:x:0:\n")
    return image


def test_the_account_is_made_once_however_often_it_is_asked_for(folder: Path, root: Path) -> None:
    for _ in range(2):
        run(folder, "account.sh", GPU_DEV_ROOT=str(root))
    users = (root / "etc" / "passwd").read_text().splitlines()
    assert users == [
        "root:x:0:0::/root:/bin/sh",
        "dev:x:1081:1081:gpu-dev:/home/dev:/bin/bash",
    ]
    assert (root / "etc" / "sudoers.d" / "gpu-dev").read_text() == "dev ALL=(ALL:ALL) NOPASSWD: ALL\n"
    assert (root / "home" / "dev").stat().st_uid == 1081
    assert (root / "home" / "dev" / ".bashrc").stat().st_uid == 1081


def test_what_is_in_a_home_already_stays_as_it_is(folder: Path, root: Path) -> None:
    kept = root / "home" / "dev" / ".bashrc"
    kept.parent.mkdir(parents=True)
    kept.write_text("# mine\n")
    run(folder, "account.sh", GPU_DEV_ROOT=str(root))
    assert kept.read_text() == "# mine\n"
    assert kept.stat().st_uid == 0


def test_nothing_is_installed_where_there_is_an_ssh_server(folder: Path, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "sshd").write_text("#!/bin/sh\n")
    (programs / "sshd").chmod(0o755)
    assert run(folder, "packages.sh", PATH=f"{programs}:{os.environ['PATH']}") == b""


def test_the_greeting_names_the_reservation_and_its_gpus(folder: Path) -> None:
    words = run(
        folder,
        "greeting.sh",
        GPU_DEV_RESERVATION_NAME="my-run",
        GPU_DEV_USER="ada",
        GPU_DEV_GPU_COUNT="2",
        GPU_DEV_GPU_TYPE="h100",
        GPU_DEV_NODE="h100-1",
        CUDA_VERSION="12.9",
    ).decode()
    assert "my-run of ada" in words
    assert "2 h100 on h100-1" in words
    assert "12.9" in words


def test_exactly_the_notices_that_are_given_stand(folder: Path, tmp_path: Path) -> None:
    home, terminals = tmp_path / "home", tmp_path / "terminals"
    home.mkdir()
    terminals.mkdir()
    (terminals / "3").touch()
    ours = ("WARN_EXPIRES_IN_30MIN.txt", "WARN_NODE_LEAVES.txt")
    for name in (*ours, "WARN_EXPIRES_IN_xMIN.txt", "WARN_MINE.txt"):
        (home / name).write_text("old\n")
    (home / "WARN_IDLE.txt").symlink_to("WARN_MINE.txt")
    places = {"GPU_DEV_HOME": str(home), "GPU_DEV_TERMINALS": str(terminals)}
    said = b"WARN_IDLE.txt\n$(id) `id` \\n 'words'\n\nOOM_DETECTED.txt\nafter the end\n"
    run(folder, "notices.sh", said, **places)
    assert {path.name: path.read_text() for path in home.iterdir()} == {
        "WARN_EXPIRES_IN_xMIN.txt": "old\n",
        "WARN_MINE.txt": "old\n",
        "WARN_IDLE.txt": "$(id) `id` \\n 'words'\n",
    }
    assert (terminals / "3").read_bytes() == b"\r\n$(id) `id` \\n 'words'\r\n"
    (terminals / "3").write_text("")
    run(folder, "notices.sh", said, **places)
    assert (terminals / "3").read_text() == ""


@pytest.mark.parametrize(
    "name", ["WARN_EXPIRES_IN_5MIN.txt", "WARN_IDLE.txt", "WARN_NODE_LEAVES.txt", "OOM_DETECTED.txt"]
)
def test_every_kind_of_notice_can_stand(folder: Path, tmp_path: Path, name: str) -> None:
    assert NOTICE_FILE.fullmatch(name)
    places = {"GPU_DEV_HOME": str(tmp_path), "GPU_DEV_TERMINALS": str(tmp_path / "none")}
    run(folder, "notices.sh", f"{name}\nWords.\n\n".encode(), **places)
    assert (tmp_path / name).read_text() == "Words.\n"


def test_a_name_that_is_no_notice_is_refused(folder: Path, tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "GPU_DEV_HOME": str(tmp_path)}
    command = ["sh", str(folder / "notices.sh")]
    said = b"../outside\nwords\n\n"
    done = subprocess.run(command, input=said, env=environment, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"../outside" in done.stderr


def test_the_use_is_told_as_far_as_it_is_known(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    row = "0: 0A00000A:{port} 0B00000A:C350 {state} 00000000:00000000\n"
    rows = [("0016", "01"), ("0016", "0A"), ("1F90", "01"), ("0016", "01")]
    table = "".join(row.format(port=port, state=state) for port, state in rows)
    (tmp_path / "net" / "tcp").write_text(f"  sl  local_address rem_address   st\n{table}")
    (tmp_path / "uptime").write_text("12.50 3.00\n")
    (tmp_path / "cpu.stat").write_text("usage_usec 2000000\nuser_usec 1\n")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "nvidia-smi").write_text("#!/bin/sh\necho '40, 20, 80'\n")
    (programs / "nvidia-smi").chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    said = run(folder, "usage.sh", GPU_DEV_PROC=str(tmp_path), GPU_DEV_CGROUP=str(tmp_path), PATH=path)
    assert said.decode().splitlines() == ["ssh 2", "cpu 12.50 2000000000", "gpu 40 20 80"]


def test_a_home_is_listed_with_sizes_dates_and_what_it_takes(folder: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "deep").mkdir(parents=True)
    (home / "deep" / "a file").write_bytes(b"x" * 1234)
    (home / "link").symlink_to("/nowhere")
    os.utime(home / "deep" / "a file", (0, 0))
    said = run(folder, "listing.sh", GPU_DEV_HOME=str(home), TZ="UTC").decode()
    listing = read_listing(said)
    assert listing is not None
    first, second = listing.text.splitlines()
    assert first == "         1,234  1970-01-01 00:00  deep/a file"
    assert second.endswith("  link")
    assert listing.used_bytes == (home / "deep" / "a file").stat().st_blocks * 512


def test_a_home_of_many_files_is_listed_in_part_and_counted_whole(folder: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for number in range(302):
        (home / f"{number:03}").touch()
    listing = read_listing(run(folder, "listing.sh", GPU_DEV_HOME=str(home)).decode())
    assert listing is not None
    assert listing.text.splitlines()[-1] == "... and 2 more"


@pytest.mark.parametrize("said", ["", "8 12 1970-01-01 00:00 file", "total 1"])
def test_a_listing_that_was_cut_off_is_none(said: str) -> None:
    assert read_listing(said) is None


def test_the_greeting_says_whose_the_home_is_and_what_to_note(folder: Path) -> None:
    common = {
        "GPU_DEV_RESERVATION_NAME": "my-run",
        "GPU_DEV_USER": "ada",
        "GPU_DEV_GPU_COUNT": "0",
        "GPU_DEV_GPU_TYPE": "cpu-x86",
        "GPU_DEV_NODE": "cpu-1",
    }
    kept = run(folder, "greeting.sh", **common, GPU_DEV_DISK="work").decode()
    assert 'Home       /home/dev is your disk "work"; it outlives the reservation' in kept
    assert "Note" not in kept
    lost = run(folder, "greeting.sh", **common, GPU_DEV_NOTICE="Not $(kept).").decode()
    assert "Home       /home/dev goes when the reservation ends" in lost
    assert "Note       Not $(kept)." in lost


@pytest.mark.parametrize(
    "name, text",
    [
        ("memory.events", "low 0\noom 7\noom_kill 3\noom_group_kill 1\n"),
        ("memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"),
    ],
    ids=["second generation of cgroups", "first"],
)
def test_what_was_ended_for_want_of_memory_is_told(
    folder: Path, tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / "uptime").write_text("12.50 3.00\n")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    said = run(
        folder, "usage.sh", GPU_DEV_PROC=str(tmp_path), GPU_DEV_CGROUP=str(tmp_path), PATH="/usr/bin:/bin"
    )
    assert "oom 3" in said.decode().splitlines()


def test_the_files_of_a_submitted_command_are_told(folder: Path, tmp_path: Path) -> None:
    files = tmp_path / "submit" / "0a1b2c3d" / "run"
    files.mkdir(parents=True)

    def read() -> Job | None:
        return read_job_report(run(folder, "job.sh", b"0a1b2c3d\n", GPU_DEV_HOME=str(tmp_path)).decode())

    assert read() is None
    (files / "output").write_text("a\n" * 20_000)
    (files / "code").write_text("143\n")
    (files / "why").write_text("time\n")
    (files / "fetched").touch()
    assert read() == Job(143, Outcome.TIMED_OUT, is_fetched=True, output="a\n" * (MAX_OUTPUT // 2))
    (files / "code").unlink()
    os.mkfifo(files / "code")
    (files / "fetched").unlink()
    (files / "fetched").symlink_to("why")
    assert read() == Job(None, Outcome.TIMED_OUT, output="a\n" * (MAX_OUTPUT // 2))
