"""What a person sees when gpu-dev does not run, stops, and comes back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.machine import Machine, running_machine, wait_for
from tests.support.port_taker import find_free_range


@pytest.fixture(scope="module")
def started() -> Iterator[Machine]:
    """On a port of its own: the usual one may be taken by another machine while this one is stopped."""
    [port] = find_free_range(1)
    with running_machine("--fleet", "test", GPU_DEV_API_PORT=str(port)) as running:
        yield running


@pytest.fixture
def machine(started: Machine) -> Iterator[Machine]:
    """One for all tests: each leaves it running, and what it has reserved is ended after it."""
    with closing(started.client()) as client:
        has_types = "t4" in client.availability().availability
    if not has_types:
        started.down()
        started.up("--fleet", "test")
    yield started
    started.end_reservations()


def test_without_a_server_every_command_says_how_to_get_one() -> None:
    with TemporaryDirectory() as folder:
        done = Machine(Path(folder)).run("list", check=False)
    assert done.returncode == 7
    assert "gpu-dev up" in done.stderr


def test_a_dev_server_lives_on_while_gpu_dev_is_stopped_and_is_found_again(machine: Machine) -> None:
    reservation = machine.reserve("-t", "t4")
    machine.ssh(reservation, "echo kept > note; nohup sleep 1000 >/dev/null 2>&1 & echo $! > sleeper")
    before = machine.show(reservation)
    stopped = machine.run("down", "--keep-servers", "--state-dir", str(machine.state_dir))
    assert "dev servers that were running still are" in stopped.stdout
    assert machine.run("list", check=False).returncode == 7
    machine.up("--fleet", "test")
    after = machine.show(reservation)
    assert {name: after[name] for name in ("status", "ssh_command", "ssh_host_keys")} == {
        name: before[name] for name in ("status", "ssh_command", "ssh_host_keys")
    }
    answer = machine.ssh(reservation, "cat note; kill -0 $(cat sleeper) && echo alive")
    assert answer.stdout.split() == ["kept", "alive"]


def test_down_ends_the_dev_servers_and_keeps_the_homes(machine: Machine) -> None:
    reservation = machine.reserve("-t", "t4")
    machine.ssh(reservation, "echo kept > note")
    machine.down()
    [note] = (machine.state_dir / "disks" / "volumes").glob("*/home/note")
    assert note.read_text() == "kept\n"
    machine.up("--fleet", "test")
    assert machine.show(reservation)["status"] == "cancelled"


def test_a_database_is_one_machines_alone(empty_database: str) -> None:
    """From a second machine the reservations of the first would look lost."""
    with running_machine("--fleet", "test", GPU_DEV_DATABASE_URL=empty_database) as first:
        reservation = first.reserve("-t", "t4")
        with TemporaryDirectory() as folder:
            second = Machine(Path(folder), {"GPU_DEV_DATABASE_URL": empty_database})
            arguments = ("up", "--detach", "--state-dir", str(second.state_dir), "--fleet", "test")
            refused = second.run(*arguments, check=False)
        assert refused.returncode == 1
        assert "belongs to gpu-dev on another machine" in refused.stderr
        assert first.show(reservation)["status"] == "active"


def test_servers_that_were_ended_behind_its_back_are_noticed_at_the_next_start(machine: Machine) -> None:
    reservation = machine.reserve("-t", "t4")
    machine.run("down", "--keep-servers", "--state-dir", str(machine.state_dir))
    assert "still ran and ended now" in machine.run("down", "--state-dir", str(machine.state_dir)).stdout
    machine.up("--fleet", "test")
    wait_for(lambda: machine.show(reservation)["status"] == "failed", "the loss to be noticed")
    assert machine.show(reservation)["reason"] == "pod_deleted"


def test_down_without_a_terminal_asks_for_a_clear_word(machine: Machine) -> None:
    machine.reserve("-t", "t4")
    done = machine.run("down", "--state-dir", str(machine.state_dir), check=False)
    assert done.returncode == 2
    assert "--keep-servers" in done.stderr


def test_a_type_that_is_no_longer_in_the_fleet_runs_on_to_its_end(machine: Machine) -> None:
    reservation = machine.reserve("-t", "t4")
    machine.run("down", "--keep-servers", "--state-dir", str(machine.state_dir))
    machine.up("--fleet", "prod")
    assert machine.show(reservation)["status"] == "active"
    assert machine.run("reserve", "-y", "-t", "t4", check=False).returncode == 2
    machine.run("cancel", reservation, "--yes")
    wait_for(lambda: machine.show(reservation)["status"] == "cancelled", "the cancel")
