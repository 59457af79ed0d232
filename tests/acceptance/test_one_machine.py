"""The whole product on one machine, used as a person would: `gpu-dev` and OpenSSH."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gpudev.client.errors import Conflict
from gpudev.texts.fact import parse_fact
from gpudev.texts.sentences import say
from gpudev.wire.jobs import SubmitRequest
from tests.support.machine import Machine, running_machine, wait_for
from tests.support.reservations import PUBLIC_KEY


def may_raise_priority() -> bool:
    """Where all of this runs at another priority, so does the control plane."""
    if os.getpriority(os.PRIO_PROCESS, 0) != 0:
        return False
    trial = subprocess.run(["nice", "-n", "-1", "nice"], capture_output=True, text=True, check=False)
    return trial.stdout.strip() == "-1"


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with running_machine("--fleet", "test") as running:
        yield running


@pytest.fixture(autouse=True)
def _leave_nothing(machine: Machine) -> Iterator[None]:
    yield
    machine.run("cancel", "--all", "--yes", check=False)


def test_a_reservation_gives_a_server_to_log_in_to(machine: Machine) -> None:
    reservation = machine.reserve("-g", "2", "-t", "T4", "-H", "0.5")
    answer = machine.ssh(reservation, "echo $CUDA_VISIBLE_DEVICES; pwd; echo $HOME; echo words >&2; exit 7")
    gpus, folder, home = answer.stdout.splitlines()
    assert len(gpus.split(",")) == 2
    assert "simulated" in gpus
    assert folder == home
    # Without a sandbox the home has its real path, which is that of the disk.
    assert home == "/home/dev" or Path(home).is_relative_to(machine.state_dir)
    assert "words" in answer.stderr
    assert answer.returncode == 7


def test_a_reservation_has_a_history_that_ends_clean(machine: Machine) -> None:
    reservation = machine.reserve("-t", "t4", "--for", "30m", "--name", "history-run")
    machine.run("cancel", "history-run", "--yes")
    job = machine.show(reservation)
    assert (job["status"], job["reason"]) == ("cancelled", "cancelled_by_user")
    assert not list((machine.state_dir / "servers").glob(f"{reservation[:8]}*"))


def test_commands_of_the_owner_work_while_the_network_is_used_up(machine: Machine) -> None:
    """Dev servers share the machine's loopback address; the owner's commands come by a unix socket."""
    with machine.client() as client:
        api = urlsplit(client.target.api_url)
    half_a_request = b"POST /v1/jobs/submit HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n{"
    with ExitStack() as held:
        for _ in range(300):
            connection = socket.create_connection((api.hostname, api.port), 10)
            held.enter_context(connection).sendall(half_a_request)
        with socket.create_connection((api.hostname, api.port), 10) as refused:
            refused.sendall(b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n")
            assert b"too_many_connections" in refused.recv(65536)
        assert machine.run("list").returncode == 0
        reservation = machine.reserve("-t", "t4")
        assert machine.ssh(reservation, "echo here").stdout == "here\n"
    assert stat.S_IMODE((machine.state_dir / "api.sock").stat().st_mode) == 0o600


@pytest.mark.skipif(not may_raise_priority(), reason="Only root may raise a priority.")
def test_the_control_plane_comes_before_dev_servers(machine: Machine) -> None:
    reservation = machine.reserve("-t", "t4")
    theirs = machine.ssh(reservation, "nice; setsid --wait cat /proc/self/autogroup").stdout.splitlines()
    assert theirs[0] == "0"
    assert not theirs[1:] or theirs[1].endswith(" nice 0")
    for pid in machine.control_plane().values():
        assert os.getpriority(os.PRIO_PROCESS, pid) < 0
        group = Path(f"/proc/{pid}/autogroup")
        assert not group.exists() or " nice -" in group.read_text(encoding="ascii")


def test_the_log_of_a_server_is_shown(machine: Machine) -> None:
    reservation = machine.reserve("-t", "t4")
    log = machine.state_dir / "servers" / reservation[:8] / "log"
    log.write_text("first words\nlast words\n")
    assert machine.run("logs", reservation, "--tail", "1").stdout == "last words\n"
    machine.run("cancel", reservation, "--yes")
    assert machine.run("logs", reservation, check=False).returncode == 3


def test_files_are_copied_both_ways_by_scp(machine: Machine, tmp_path: Path) -> None:
    reservation = machine.reserve("-t", "t4")
    config = machine.home / ".gpu-dev" / f"{reservation[:8]}-sshconfig"
    there = f"gpu-dev-{reservation[:8]}:data.bin"
    content = bytes(range(256)) * 1000
    (tmp_path / "out.bin").write_bytes(content)
    for source, target in ((str(tmp_path / "out.bin"), there), (there, str(tmp_path / "back.bin"))):
        copy = ["scp", "-q", "-F", config, source, target]
        subprocess.run(copy, env=machine.environment, check=True, timeout=30)
    assert (tmp_path / "back.bin").read_bytes() == content


def test_a_changed_host_key_is_refused(machine: Machine) -> None:
    reservation = machine.reserve("-t", "t4")
    assert machine.ssh(reservation, "true").returncode == 0
    known_hosts = machine.home / ".gpu-dev" / f"{reservation[:8]}-known_hosts"
    address, algorithm, key = known_hosts.read_text().split()[:3]
    assert algorithm == "ssh-ed25519"
    config = machine.home / ".gpu-dev" / f"{reservation[:8]}-sshconfig"
    known_hosts.write_text(f"{address} {algorithm} {key[:-8]}AAAAAAAA\n")
    attempt = subprocess.run(
        ["ssh", "-F", config, f"gpu-dev-{reservation[:8]}", "true"],
        env=machine.environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert attempt.returncode == 255
    assert "verification failed" in attempt.stderr


def test_when_all_gpus_are_taken_the_next_waits_and_then_starts_by_itself(machine: Machine) -> None:
    holders = [machine.reserve("-g", "4", "-t", "t4", "-H", "2") for _ in range(2)]
    waiting = machine.submit("-g", "2", "-t", "t4", "-H", "1")
    behind = machine.submit("-g", "1", "-t", "t4", "-H", "1")
    job = wait_for(lambda: (found := machine.show(waiting)).get("queue_position") and found, "a position")
    assert (job["status"], job["queue_position"], job["reason"]) == ("queued", 1, "waiting_for_capacity")
    assert holders[0][:8] in job["current_detailed_status"]
    assert 118 <= job["estimated_wait_minutes"] <= 128  # The plan has steps of five minutes.
    [queued] = [event for event in machine.ask("why", waiting)["events"] if event["kind"] == "queued"]
    assert (queued["queue_position"], queued["data"]["position"]) == (1, 1)
    assert holders[0][:8] in say(parse_fact(queued["data"]["why"]))
    assert wait_for(lambda: machine.show(behind).get("queue_position"), "the next position") == 2
    machine.run("cancel", holders[1], "--yes")
    for reservation in (waiting, behind):
        wait_for(lambda each=reservation: machine.show(each)["status"] == "active", "the queue to move")


def test_availability_follows_what_happens(machine: Machine) -> None:
    def free() -> int:
        return int(machine.ask("avail")["availability"]["t4"]["available"])

    wait_for(lambda: free() == 8, "all to be free")
    machine.reserve("-g", "2", "-t", "t4")
    wait_for(lambda: free() == 6, "two to be taken")
    status = machine.ask("status")
    assert (status["active_reservations"], status["in_use_gpus"]) == (1, 2)
    assert any("Simulated GPUs" in notice for notice in status["notices"])


@pytest.mark.parametrize(
    "arguments,code,words",
    [
        pytest.param("reserve -y -t q7", 2, ["no GPU type", "t4"], id="unknown-type"),
        pytest.param("reserve -y -t t4 -g 3", 2, ["3", "1, 2 or 4"], id="three-gpus"),
        pytest.param("reserve -y -t t4 -g 99", 2, ["99", "1, 2 or 4"], id="too-many-gpus"),
        pytest.param("reserve -y -t t4 -H 0", 2, ["5 minutes to 24 hours"], id="no-time"),
        pytest.param("reserve -y -t t4 -H 100", 2, ["5 minutes to 24 hours"], id="too-long"),
        pytest.param("reserve -y -t t4 --name Not_A_Name", 2, ["lower-case"], id="bad-name"),
        pytest.param(
            "reserve -y -t t4 --env CUDA_VISIBLE_DEVICES=0", 2, ["reserved"], id="reserved-variable"
        ),
        pytest.param("show 00000000-0000-4000-8000-000000000000", 3, ["not found", "list"], id="unknown-id"),
        pytest.param("cancel -y nonsense", 3, ["not found", "list"], id="unknown-name"),
        pytest.param("connect nonsense -- true", 3, ["not found"], id="connect-to-unknown"),
        pytest.param("frobnicate", 2, ["frobnicate"], id="unknown-command"),
    ],
)
def test_a_mistake_gets_a_sentence_and_a_way_out(
    machine: Machine, arguments: str, code: int, words: list[str]
) -> None:
    done = machine.run(*arguments.split(), check=False)
    assert done.returncode == code, done.stderr
    for word in words:
        assert word in done.stderr
    assert "Traceback" not in done.stderr


def test_a_taken_name_is_refused(machine: Machine) -> None:
    machine.reserve("-t", "t4", "--name", "my-run")
    done = machine.run("reserve", "-y", "-t", "t4", "--name", "my-run", check=False)
    assert done.returncode == 1
    assert "gpu-dev cancel my-run" in done.stderr


def test_a_repeated_submit_is_the_same_reservation(machine: Machine) -> None:
    asked = SubmitRequest(gpu_type="t4", gpu_count=1, duration_hours=1, ssh_public_keys=[PUBLIC_KEY])
    other = replace(asked, gpu_count=2)
    with machine.client() as client:
        first = client.reserve(asked, idempotency_key="one-click")
        assert client.reserve(asked, idempotency_key="one-click").job_id == first.job_id
        with pytest.raises(Conflict):
            client.reserve(other, idempotency_key="one-click")


def test_a_second_up_says_that_one_runs(machine: Machine) -> None:
    done = machine.run("up", "--detach", "--state-dir", str(machine.state_dir), check=False)
    assert done.returncode == 1
    assert "runs already at http://127.0.0.1:" in done.stderr


def test_metrics_count_the_turns_of_the_controller_and_the_requests_of_the_api(machine: Machine) -> None:
    import urllib.request  # noqa: PLC0415 - this test alone speaks HTTP by itself

    machine.reserve("-t", "t4")
    config = json.loads((machine.home / ".config" / "gpu-dev" / "config.json").read_text())
    port = int(config["environments"]["local"]["api_url"].rpartition(":")[2]) + 1000
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    assert 'gpu_dev_turns_total{controller="reservations",outcome="done"}' in text
    assert 'route="/v1/jobs/submit"' in text
    assert 'outcome="defect"' not in text


def test_an_idle_machine_has_nothing_to_complain_about(machine: Machine) -> None:
    for log in ("controller.log", "api.log"):
        assert '"level": "error"' not in (machine.state_dir / "logs" / log).read_text()
