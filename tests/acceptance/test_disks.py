"""Disks on one machine, used as a person would: what is written over SSH is there again the next time."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from gpudev.client.errors import Conflict
from gpudev.wire.jobs import SubmitRequest
from tests.support.disk_life import WORDS, check_that_a_file_lives_through_everything, read, write_and_cancel
from tests.support.machine import Machine, on_database, running_machine
from tests.support.reservations import PUBLIC_KEY


@pytest.fixture(scope="module")
def machine(module_database: str) -> Iterator[Machine]:
    settings = {"GPU_DEV_REQUESTS_PER_SECOND": "0", **on_database(module_database)}
    with running_machine("--fleet", "test", **settings) as running:
        yield running


@pytest.fixture(autouse=True)
def _leave_nothing(machine: Machine) -> Iterator[None]:
    yield
    machine.run("cancel", "--all", "--yes", check=False)


def test_what_was_written_is_there_again(machine: Machine) -> None:
    write_and_cancel(machine, "t4", "work", "notes.txt")
    assert read(machine, "t4", "work", "notes.txt") == WORDS


def test_a_file_lives_through_everything_that_can_be_done_to_its_disk(machine: Machine) -> None:
    check_that_a_file_lives_through_everything(machine, "t4")


def test_without_a_word_the_home_is_the_default_disk(machine: Machine) -> None:
    first = machine.reserve("-t", "t4")
    assert machine.show(first)["disk_name"] == "default"
    second = machine.reserve("-t", "t4")
    job = machine.show(second)
    assert "disk_name" not in job
    assert "not kept" in job["warning"]
    greeting = machine.ssh(second, "true")
    assert greeting.returncode == 0


def test_a_disk_that_is_being_given_back_is_waited_for(machine: Machine) -> None:
    first = machine.reserve("-t", "t4", "--disk", "slow")
    machine.ssh(first, "head -c 50000000 /dev/urandom > ~/big")
    machine.run("cancel", first, "--yes", "--no-wait")
    second = machine.reserve("-t", "t4", "--disk", "slow")
    assert machine.ssh(second, "stat -c %s ~/big").stdout.strip() == "50000000"


def test_a_disk_in_use_is_refused_with_the_choices(machine: Machine) -> None:
    first = machine.reserve("-t", "t4", "--disk", "taken")
    refused = machine.run("reserve", "--yes", "-t", "t4", "--disk", "taken", check=False)
    assert refused.returncode == 1
    assert f'Disk "taken" is attached to reservation {first[:8]}.' in refused.stderr
    assert "--disk none" in refused.stderr
    for command in (("delete", "taken", "--yes"), ("rename", "taken", "other"), ("grow", "taken", "200")):
        assert machine.run("disk", *command, check=False).returncode == 1


def test_without_persistence_nothing_is_touched(machine: Machine) -> None:
    reservation = machine.reserve("-t", "t4", "--no-persist")
    job = machine.show(reservation)
    assert "disk_name" not in job
    assert "warning" not in job


def test_a_disk_is_made_and_grows(machine: Machine) -> None:
    made = machine.ask("disk", "create", "made", "--size", "20")
    assert (made["state"], made["size_gb"]) == ("available", 20)
    assert machine.ask("disk", "grow", "made", "30")["size_gb"] == 30
    assert machine.run("disk", "grow", "made", "30", check=False).returncode == 2
    assert machine.run("disk", "create", "made", check=False).returncode == 1
    assert "made" in machine.run("disk", "list").stdout


@pytest.mark.parametrize("rounds", [10, pytest.param(200, marks=pytest.mark.soak)])
def test_of_two_who_ask_for_one_disk_at_once_exactly_one_has_it(machine: Machine, rounds: int) -> None:
    together = threading.Barrier(2)

    def ask(number: int) -> str | Conflict:
        request = SubmitRequest(
            gpu_type="t4", gpu_count=1, duration_hours=1, disk_name="raced", ssh_public_keys=[PUBLIC_KEY]
        )
        with machine.client() as client:
            client.whoami()
            together.wait(30)
            try:
                return client.reserve(request).job_id
            except Conflict as refused:
                return refused

    with ThreadPoolExecutor(2) as threads, machine.client() as client:
        for _ in range(rounds):
            [winner], [refused] = _tell_apart(threads.map(ask, range(2)))
            assert refused.code == "disk_in_use"
            assert f'Disk "raced" is attached to reservation {winner[:8]}.' in refused.message
            assert "--disk none" in refused.hint
            client.cancel(winner)
            client.wait_until_clean(winner, timeout=60)


def _tell_apart(answers: Iterable[str | Conflict]) -> tuple[list[str], list[Conflict]]:
    found = list(answers)
    winners = [answer for answer in found if isinstance(answer, str)]
    return winners, [answer for answer in found if isinstance(answer, Conflict)]
