"""`gpu-dev submit`, `cp`, `wait` and `open` on the whole product."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.machine import Machine, on_database, running_machine, wait_for
from tests.support.submitting import submitting
from tests.support.terminal import DOWN, ENTER, INTERRUPT, open_terminal

FLEET = '[[nodes]]\ntype = "h100"\ncount = 2\ngpus = 2\n'
GPU_DEV = Path(sys.executable).with_name("gpu-dev")


@pytest.fixture(scope="module")
def machine(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    fleet = tmp_path_factory.mktemp("fleet") / "fleet.toml"
    fleet.write_text(FLEET)
    with running_machine("--fleet", str(fleet), **on_database(module_database)) as running:
        yield running


@pytest.fixture(autouse=True)
def _leave_nothing(machine: Machine) -> Iterator[None]:
    yield
    machine.run("cancel", "--all", "--yes", check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.sh").write_text(
        "echo working; echo 42 > result.txt; mkdir -p out; mv input.txt out; exit 7"
    )
    (folder / "input.txt").write_text("given\n")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("mine")
    return folder


def test_a_command_runs_with_its_folder_and_its_results_come_back(machine: Machine, project: Path) -> None:
    done = machine.run("submit", "-t", "h100", "-C", str(project), "--", "sh", "train.sh", check=False)
    assert (done.returncode, done.stdout) == (7, "working\n"), done.stderr
    assert (project / "result.txt").read_text() == "42\n"
    assert (project / "out" / "input.txt").read_text() == "given\n"
    (job,) = machine.list()[:1]
    short = job["job_id"][:8]
    wait_for(lambda: machine.show(short)["status"] == "cancelled", "the GPUs to be given back")
    shown = machine.show(short)
    assert (shown["outcome"], shown["exit_code"], shown["reason"]) == ("failed", 7, "command_finished")
    assert shown["current_detailed_status"] == "The command finished with exit code 7."
    for command in (("list", "--all"), ("show", short), ("why", short)):
        assert "failed, exit code 7" in " ".join(machine.run(*command).stdout.split()), command
    assert machine.ask("why", short)["job"]["exit_code"] == 7
    assert machine.run("logs", short).stdout == "working\n"


def test_what_did_not_change_is_not_fetched(machine: Machine, project: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    asked = ("submit", "-t", "h100", "-C", str(project), "--results", str(results), "--exclude", "*.tmp")
    machine.run(*asked, "ls -A > listing; touch a.tmp; test ! -e .git")
    assert [file.name for file in results.iterdir()] == ["listing"]
    assert (results / "listing").read_text().split() == ["input.txt", "listing", "train.sh"]


def test_a_lost_connection_is_made_again(machine: Machine, project: Path) -> None:
    """The connection is cut twice: every byte comes once, and so does the exit code."""
    (project / "steps.sh").write_text(
        "for step in 1 2; do echo before $step; until [ -e go-$step ]; do sleep 0.05; done; done\n"
        "echo end\nexit 7\n"
    )
    with submitting(machine, "-t", "h100", "-n", "cut", "-C", str(project), "sh steps.sh") as run:
        for step in (1, 2):
            run.wait_for_output(f"before {step}\n")
            run.cut()
            there = f"submit/{machine.show('cut')['job_id'][:8]}/files/go-{step}"
            assert machine.ssh("cut", f"touch {there}").returncode == 0
        assert run.end() == 7, run.errors
        assert run.output == "before 1\nbefore 2\nend\n"
    assert (project / "go-2").exists()


def test_the_environment_is_that_of_a_login(machine: Machine, project: Path) -> None:
    kept = machine.run("submit", "-t", "h100", "--keep-alive", "-n", "kept", "-C", str(project), "true")
    assert "gpu-dev connect" in kept.stderr
    assert machine.show("kept")["status"] == "active"
    machine.ssh("kept", "echo export COLOUR=blue > ~/.profile; echo export COLOUR=blue > ~/.bash_profile")
    machine.run("cancel", "kept", "--yes")
    done = machine.run(
        "submit", "-t", "h100", "-C", str(project), "--env", "SHAPE=round", "echo $COLOUR $SHAPE"
    )
    assert done.stdout == "blue round\n"
    assert not (project / "submit").exists()


def test_several_nodes_all_have_the_folder_and_rank_0_runs(machine: Machine, project: Path) -> None:
    everywhere = (
        "for host in $(echo $MULTINODE_HOSTS | tr , ' '); do "
        'ssh $host "cd $(pwd | sed s,$HOME/,,) && cat input.txt && echo \\$RANK"; done; echo $RANK'
    )
    asked = ("submit", "-t", "h100", "-g", "4", "--distributed", "--disk", "none", "-C", str(project))
    done = machine.run(*asked, everywhere)
    assert done.stdout.split() == ["given", "0", "given", "1", "0"]


def test_ctrl_c_ends_the_command_and_gives_back(machine: Machine, project: Path) -> None:
    with submitting(machine, "-t", "h100", "-n", "stopped", "-C", str(project), "echo on; sleep 600") as run:
        run.wait_for_output("on\n")
        run.process.send_signal(signal.SIGINT)
        assert run.end() == 130
    wait_for(lambda: machine.show("stopped")["status"] == "cancelled", "the GPUs to be given back")


SAVES = "exec 2>/dev/null; trap 'echo saved > checkpoint; exit 9' TERM; echo on; while :; do sleep 0.05; done"
"""A command that writes a checkpoint when it is stopped; Bash would report the end of its `sleep`."""
SECRETS = (
    ".ssh/id_ed25519",
    "id_rsa",
    "server.pem",
    "plain.txt",
    "hf_token.txt",
    ".env",
    ".env.local",
    ".aws/credentials",
    ".netrc",
    ".kube/config",
    ".docker/config.json",
    ".pypirc",
    ".npmrc",
    ".config/gcloud/credentials.db",
    ".azure/accessTokens.json",
    ".oci/config",
    ".cache/huggingface/token",
    ".bash_history",
    ".zsh_history",
)


def plant(project: Path, *paths: str) -> None:
    for path in paths:
        for place in (project / path, project / "below" / path):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n" if path == "plain.txt" else "secret\n")


def test_no_secret_is_sent_and_all_are_listed(machine: Machine, project: Path, tmp_path: Path) -> None:
    plant(project, *SECRETS)
    (project / ".gitignore").write_text("*.ignored\n!kept.ignored\n")
    (project / ".gpudevignore").write_text("/big\n")
    for name in ("a.ignored", "kept.ignored", "big", ".env.example"):
        (project / name).write_text("x\n")
    (project / "link").symlink_to(tmp_path)
    asked = ("submit", "-t", "h100", "-C", str(project), "--results", str(tmp_path / "results"))
    done = machine.run(*asked, "find . ! -type d | sort; tail -n 1 -q below/* .[!.]* 2> /dev/null; true")
    sent = [line.removeprefix("./") for line in done.stdout.splitlines() if line.startswith("./")]
    assert sent == sorted(
        (".env.example", ".gitignore", ".gpudevignore", "input.txt", "kept.ignored", "link", "train.sh")
    )
    assert "secret" not in done.stdout
    for path in SECRETS:
        top = path if not path.startswith(".config") else ".config/gcloud"
        assert any(part in done.stderr for part in (top, f"{top.split('/')[0]}/")), path


def test_a_whole_home_is_refused_and_a_dry_run_sends_nothing(machine: Machine, project: Path) -> None:
    before = len(machine.list())
    for place in (machine.home, machine.home.parent, Path("/")):
        refused = machine.run("submit", "-t", "h100", "-C", str(place), "true", check=False)
        assert (refused.returncode, "--allow-home" in refused.stderr) == (2, True), refused.stderr
    plant(project, ".env")
    shown = machine.run("submit", "--dry-run", "-C", str(project), "--include", "below/.env", "true")
    assert "3 files, " in shown.stderr
    assert "environment file   .env\n" in shown.stderr
    assert len(machine.list()) == before


def test_ctrl_c_without_a_person_stops_it_and_fetches(machine: Machine, project: Path) -> None:
    with submitting(machine, "-t", "h100", "-n", "saved", "-C", str(project), SAVES) as run:
        run.wait_for_output("on\n")
        run.process.send_signal(signal.SIGINT)
        assert run.end() == 130, run.errors
    assert (project / "checkpoint").read_text() == "saved\n"


@pytest.mark.parametrize("keys, code", [((ENTER,), 130), ((DOWN, ENTER), 130), ((DOWN, DOWN, ENTER), 0)])
def test_ctrl_c_asks_a_person(machine: Machine, project: Path, keys: tuple[str, ...], code: int) -> None:
    """Stop and fetch, leave it running, or continue: nothing that was written is lost in any case."""
    command = "echo 1 > first; echo on; until [ -e go ]; do sleep 0.05; done; echo 2 > second"
    typed = [str(GPU_DEV), "submit", "-t", "h100", "-n", "asked", "-C", str(project), command]
    environment = {**machine.environment, "TERM": "xterm-256color"}
    environment.pop("NO_COLOR")
    with open_terminal(typed, environment, columns=100, rows=40) as terminal:
        terminal.wait_for("Send this and run the command?")
        terminal.press(ENTER)
        terminal.wait_for("\non")
        terminal.press(INTERRUPT)
        terminal.wait_for("leave it running")
        terminal.press(*keys)
        if code == 0:
            terminal.wait_until_gone("leave it running")
            there = f"submit/{machine.show('asked')['job_id'][:8]}/files/go"
            assert machine.ssh("asked", f"touch {there}").returncode == 0
        assert terminal.wait_for_end() == code, terminal.written
    left = len(keys) == 2
    assert (machine.show("asked")["status"] == "active") is left
    assert (project / "first").exists() is not left
    assert (project / "second").exists() is (code == 0)
    if left:
        place = f"submit/{machine.show('asked')['job_id'][:8]}/files"
        assert f"gpu-dev cp {place.split('/')[1]}:{place} ." in " ".join(terminal.written.split())
        machine.run("cp", f"asked:{place}/first", str(project))
        assert (project / "first").read_text() == "1\n"


def test_a_failed_command_a_killed_client_and_an_end_lose_no_file(machine: Machine, project: Path) -> None:
    """The client is killed, then the reservation ended: what the job wrote is on the disk."""
    asked = ("-t", "h100", "-n", "lost", "-C", str(project), "echo 1 > result; echo on; sleep 600")
    with submitting(machine, *asked) as run:
        run.wait_for_output("on\n")
        run.kill()
    short = machine.show("lost")["job_id"][:8]
    assert machine.run("logs", "lost", "--tail", "1").stdout.endswith("on\n")
    machine.run("cancel", "lost", "--yes")
    ended = machine.show(short)
    assert (ended["outcome"], ended["reason"]) == ("stopped", "cancelled_by_user")
    assert f'on the disk "default" in submit/{short}/files' in ended["current_detailed_status"]
    assert machine.run("logs", short).stdout == "on\n"
    machine.reserve("-t", "h100", "-n", "later")
    machine.run("cp", f"later:submit/{short}/files/result", str(project))
    assert (project / "result").read_text() == "1\n"


def test_before_its_time_ends_it_is_stopped_and_its_results_are_fetched(
    machine: Machine, project: Path
) -> None:
    """A grace of five minutes in a reservation that is a few seconds longer."""
    asked = ("submit", "-t", "h100", "-H", "0.0845", "--grace", "5m", "-C", str(project))
    done = machine.run(*asked, SAVES, check=False)
    assert (done.returncode, done.stdout) == (9, "on\n"), done.stderr
    assert "about to end" in done.stderr
    assert (project / "checkpoint").read_text() == "saved\n"


def test_a_command_that_nobody_follows_is_stopped_before_its_time_ends(
    machine: Machine, project: Path
) -> None:
    """The client is gone; the notice of the end, five minutes before it, is enough."""
    asked = ("-t", "h100", "-n", "alone", "-H", "0.0845", "--grace", "5m", "-C", str(project), SAVES)
    with submitting(machine, *asked) as run:
        run.wait_for_output("on\n")
        run.kill()
    short = machine.show("alone")["job_id"][:8]
    there = f"submit/{short}/files/checkpoint"
    wait_for(lambda: machine.ssh("alone", f"cat {there}").stdout == "saved\n", "the checkpoint")
    wait_for(lambda: machine.ssh("alone", f"cat submit/{short}/run/code").stdout == "9\n", "its end")
    machine.run("cancel", "alone", "--yes")
    ended = machine.show(short)
    assert (ended["outcome"], ended["exit_code"]) == ("timed_out", 9)


def test_a_command_that_is_gone_without_a_trace_loses_no_file(machine: Machine, project: Path) -> None:
    asked = ("submit", "-t", "h100", "-n", "gone", "-C", str(project))
    done = machine.run(*asked, "echo 1 > first; kill -9 $PPID; sleep 0.1", check=False)
    assert (done.returncode, "is gone" in done.stderr) == (1, True), done.stderr
    assert (project / "first").read_text() == "1\n"
    wait_for(lambda: machine.show("gone")["status"] == "cancelled", "the GPUs to be given back")


def test_what_is_said_is_said_once_and_true(machine: Machine, project: Path) -> None:
    holder = machine.reserve("-t", "h100", "-n", "holder")
    done = machine.run("submit", "-t", "h100", "-C", str(project), "true")
    assert done.stderr.count("Asked for") == 1
    assert "home is not kept" in done.stderr
    assert "is new or changed is in" not in done.stderr
    silent = machine.run("logs", holder)
    assert silent.stdout or "has written nothing" in silent.stderr
    machine.run("cancel", holder, "--yes")


def test_an_end_of_the_reservation_is_told(machine: Machine, project: Path) -> None:
    with submitting(machine, "-t", "h100", "-n", "ending", "-C", str(project), "echo on; sleep 600") as run:
        run.wait_for_output("on\n")
        machine.run("cancel", "ending", "--yes")
        assert run.end() == 1
        assert "is cancelled" in run.errors


def test_results_that_cannot_be_fetched_keep_the_reservation(machine: Machine, project: Path) -> None:
    asked = ("submit", "-t", "h100", "-n", "safe", "-C", str(project))
    done = machine.run(*asked, "rm -rf input.txt; echo 1 > result.txt; rm ../run/sent", check=False)
    assert done.returncode == 1
    assert "gpu-dev cp" in done.stderr
    assert machine.show("safe")["status"] == "active"


def test_files_are_copied_both_ways(machine: Machine, project: Path, tmp_path: Path) -> None:
    machine.reserve("-t", "h100", "-n", "copies")
    machine.run("cp", str(project), "copies:work")
    machine.run("cp", "copies:work/train.sh", "copies:work/input.txt", str(tmp_path))
    assert (tmp_path / "input.txt").read_text() == "given\n"
    mistake = machine.run("cp", "copies:a", "copies:b", check=False)
    assert (mistake.returncode, "exactly one side" in mistake.stderr) == (2, True)
    assert machine.run("cp", "nobody:a", str(tmp_path), check=False).returncode == 3


def test_a_wait_ends_when_it_should(machine: Machine) -> None:
    holder = machine.reserve("-t", "h100", "-g", "4", "--distributed")
    behind = machine.submit("-t", "h100")
    late = machine.run("wait", behind, "--timeout", "0.3s", check=False)
    assert late.returncode == 6, late.stderr
    machine.run("cancel", holder, "--yes")
    assert machine.ask("wait", behind, "--for", "active", "--timeout", "1m")["status"] == "active"
    machine.run("cancel", behind, "--yes", "--no-wait")
    assert machine.run("wait", behind, "--for", "clean").stdout.endswith(": cancelled\n")
    assert machine.run("wait", behind, check=False).returncode == 1


def test_plain_ssh_and_editors_know_the_server_by_its_name(machine: Machine, tmp_path: Path) -> None:
    machine.reserve("-t", "h100", "-n", "known")
    assert machine.run("open", "vscode", "known", check=False).returncode == 1
    machine.run("config", "ssh-include")
    assert "there already" in machine.run("config", "ssh-include").stdout
    plain = ["ssh", "-F", machine.home / ".ssh" / "config", "gpu-dev-known", "echo $GPU_DEV_RESERVATION_NAME"]
    told = subprocess.run(
        plain, env=machine.environment, capture_output=True, text=True, check=True, timeout=30
    )
    assert told.stdout == "known\n"
    editor = tmp_path / "code"
    editor.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\nexit 5\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    with_editor = {**machine.environment, "PATH": f"{tmp_path}{os.pathsep}{machine.environment['PATH']}"}
    opened = subprocess.run([GPU_DEV, "open", "vscode", "known"], env=with_editor, check=False, timeout=60)
    assert opened.returncode == 5
    host = f"gpu-dev-{machine.show('known')['job_id'][:8]}"
    words = (tmp_path / "asked").read_text().split()
    assert words[:2] == ["--remote", f"ssh-remote+{host}"]
    missing = machine.run("open", "cursor", "known", check=False)
    assert (missing.returncode, "cursor://vscode-remote/ssh-remote+" in missing.stderr) == (1, True)
