"""Several whole nodes at once, on the whole product: `gpu-dev`, OpenSSH, and members that know each other."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpudev.adapters.local.records import Records
from tests.support.machine import Machine, on_database, running_machine, wait_for

FLEET = '[[nodes]]\ntype = "a100"\ncount = 2\ngpus = 2\n'
GANG = ("-t", "a100", "-g", "4", "--distributed", "-H", "1")
EVERY_HOST = "for host in $(echo $MULTINODE_HOSTS | tr , ' '); do ssh $host 'echo $NODE_RANK'; done"


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


def run_on(machine: Machine, reservation: str, rank: int, command: str) -> str:
    done = machine.run("connect", reservation, "--node", str(rank), "--", command)
    return done.stdout


def list_server_files(machine: Machine, reservation: str) -> list[Path]:
    return list((machine.state_dir / "servers").glob(f"{reservation[:8]}*"))


def count_free(machine: Machine) -> int:
    return int(machine.ask("avail")["availability"]["a100"]["available"])


def test_a_gang_is_several_nodes_that_know_and_reach_each_other(machine: Machine) -> None:
    reservation = machine.reserve(*GANG, "--name", "train")
    job = machine.show(reservation)
    assert [(node["rank"], node["node"]) for node in job["nodes"]] == [(0, "a100-0"), (1, "a100-1")]
    assert job["ssh_command"] == job["nodes"][0]["ssh_command"] != job["nodes"][1]["ssh_command"]
    names = f"gpu-dev-{reservation[:8]},gpu-dev-{reservation[:8]}-1"
    for rank in (0, 1):
        told = run_on(machine, reservation, rank, "echo $RANK $WORLD_SIZE $NODE_RANK $MULTINODE_HOSTS")
        assert told.split() == [str(rank), "2", str(rank), names]
        gpus = run_on(machine, reservation, rank, "echo $CUDA_VISIBLE_DEVICES").strip()
        assert gpus == f"simulated-a100-{rank}-0,simulated-a100-{rank}-1"
        assert run_on(machine, reservation, rank, EVERY_HOST).split() == ["0", "1"]
    machine.run("cancel", reservation, "--yes")
    assert not list_server_files(machine, reservation)
    wait_for(lambda: count_free(machine) == 4, "all GPUs to be free")


def test_every_node_is_a_host_for_plain_ssh(machine: Machine) -> None:
    reservation = machine.reserve(*GANG, "--name", "hosts")
    config = machine.home / ".gpu-dev" / f"{reservation[:8]}-sshconfig"
    for host, rank in (
        ("gpu-dev-hosts", "0"),
        (f"gpu-dev-{reservation[:8]}-1", "1"),
        ("gpu-dev-hosts-1", "1"),
    ):
        done = subprocess.run(
            ["ssh", "-F", config, host, "echo $RANK"],
            env=machine.environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        assert done.stdout.strip() == rank


@pytest.mark.parametrize("rank", [0, 1])
def test_one_member_that_is_killed_ends_all_with_one_reason(machine: Machine, rank: int) -> None:
    reservation = machine.reserve(*GANG)
    key = f"{reservation[:8]}-1" if rank else reservation[:8]
    processes = Records(machine.state_dir).files_of(key).find_processes()
    assert processes is not None
    os.kill(processes.root.pid, signal.SIGKILL)
    with machine.client() as client:
        client.wait_until_clean(reservation, timeout=30)
    job = machine.show(reservation)
    assert (job["status"], job["reason"]) == ("failed", "server_failed")
    assert f"gpu-dev-{key} on a100-{rank}" in job["failure_reason"]
    assert not list_server_files(machine, reservation)
    wait_for(lambda: count_free(machine) == 4, "all GPUs to be free")


def test_a_gang_waits_for_whole_nodes_and_starts_by_itself(machine: Machine) -> None:
    small = machine.reserve("-t", "a100", "-g", "1", "-H", "2")
    gang = machine.submit(*GANG)
    job = wait_for(lambda: (found := machine.show(gang)).get("queue_position") and found, "a position")
    assert (job["status"], job["reason"]) == ("queued", "waiting_for_capacity")
    assert job["current_detailed_status"].startswith("4 a100 GPUs on 2 whole nodes: a100-0 has room at ")
    assert small[:8] in job["current_detailed_status"]
    assert 118 <= job["estimated_wait_minutes"] <= 128  # The plan has steps of five minutes.
    machine.run("cancel", small, "--yes")
    active = wait_for(lambda: is_active(machine, gang), "the gang to start")
    assert len(active["nodes"]) == 2


def is_active(machine: Machine, reservation: str) -> dict[str, Any] | None:
    job = machine.show(reservation)
    return job if job["status"] == "active" else None


@pytest.mark.parametrize(
    "arguments, words",
    [
        pytest.param("-g 4", ["2 whole nodes", "--distributed"], id="not said"),
        pytest.param("-g 3 -d", ["3 a100 GPUs", "Ask for 4"], id="not whole"),
        pytest.param("-g 8 -d", ["8 GPUs", "Ask for 4"], id="too many"),
    ],
)
def test_what_is_no_gang_gets_a_sentence_and_a_way_out(
    machine: Machine, arguments: str, words: list[str]
) -> None:
    done = machine.run("reserve", "-y", "-t", "a100", *arguments.split(), check=False)
    assert done.returncode == 2
    assert all(word in done.stderr for word in words), done.stderr
