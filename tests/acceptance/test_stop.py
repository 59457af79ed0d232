"""`gpu-dev stop` and `start` on one machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.machine import Machine, on_database, running_machine, wait_for
from tests.support.stop_life import check_that_a_stop_keeps_the_disk_and_the_time


@pytest.fixture(scope="module")
def machine(module_database: str) -> Iterator[Machine]:
    settings = {"GPU_DEV_REQUESTS_PER_SECOND": "0", **on_database(module_database)}
    with running_machine("--fleet", "test", **settings) as running:
        yield running


@pytest.fixture(autouse=True)
def _leave_nothing(machine: Machine) -> Iterator[None]:
    yield
    machine.run("cancel", "--all", "--yes", check=False)


def test_a_stop_keeps_the_disk_and_the_time(machine: Machine) -> None:
    check_that_a_stop_keeps_the_disk_and_the_time(machine, "t4", 2)


def test_its_gpus_are_free_for_others_and_it_waits_for_them_like_anybody(machine: Machine) -> None:
    machine.reserve("-t", "t4", "-g", "4", "--disk", "none", "--name", "one")
    machine.reserve("-t", "t4", "-g", "4", "--disk", "none", "--name", "two")
    machine.run("stop", "one", "--yes")
    machine.reserve("-t", "t4", "-g", "4", "--disk", "none", "--name", "three")
    waiting = machine.ask("start", "one", "--no-wait")
    assert waiting["status"] in {"pending", "queued"}
    machine.run("cancel", "three", "--yes")
    machine.run("wait", "one")


def test_while_another_has_its_disk_it_waits_and_says_so(machine: Machine) -> None:
    machine.reserve("-t", "t4", "--disk", "shared", "--name", "first")
    machine.run("stop", "first", "--yes")
    machine.reserve("-t", "t4", "--disk", "shared", "--name", "second")
    machine.run("start", "first", "--no-wait")
    wait_for(lambda: machine.show("first").get("reason") == "disk_busy", "the wait for the disk")
    assert machine.show("first")["status"] == "queued"
    machine.run("cancel", "second", "--yes")
    machine.run("wait", "first")


def test_a_stopped_one_is_explained_and_cannot_be_connected_to(machine: Machine) -> None:
    machine.reserve("-t", "t4", "--disk", "none", "--name", "still")
    machine.run("stop", "still", "--yes")
    assert "stopped" in machine.run("list").stdout
    why = machine.run("why", "still").stdout
    assert "is stopped" in why
    assert "gpu-dev start" in why
    refused = machine.run("connect", "still", "--", "true", check=False)
    assert refused.returncode == 1
    assert "gpu-dev start" in refused.stderr
    assert machine.run("stop", "still", "--yes").returncode == 0
    for command in (("start", ""), ("extend", "", "1")):
        unnamed = machine.run(*command, check=False)
        assert (unnamed.returncode, "No reservation is named" in unnamed.stderr) == (2, True)
    machine.run("cancel", "still", "--yes")
    assert "cancelled" in machine.run("why", "still").stdout


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("start", "runs"), "only a stopped one can be started"),
        (("stop", "nobody", "--yes"), "was not found"),
        (("stop", "runs"), "There is nobody to ask here"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_what_cannot_be_done_is_refused_with_a_way_out(
    machine: Machine, arguments: tuple[str, ...], words: str
) -> None:
    machine.reserve("-t", "t4", "--disk", "none", "--name", "runs")
    refused = machine.run(*arguments, check=False)
    assert refused.returncode != 0
    assert words in refused.stderr


def test_bad_gpus_leave_it_stopped(machine: Machine) -> None:
    machine.reserve("-t", "t4", "--disk", "none", "--name", "odd")
    machine.run("stop", "odd", "--yes")
    for wrong in (("-g", "3"), ("-t", "h999"), ("-g", "-1")):
        assert machine.run("start", "odd", *wrong, check=False).returncode != 0
    assert machine.show("odd")["status"] == "stopped"


def test_a_start_that_is_repeated_is_the_same_start(machine: Machine) -> None:
    """As clients do that were not answered."""
    machine.reserve("-t", "t4", "--disk", "none", "--name", "twice")
    machine.run("stop", "twice", "--yes")
    first = machine.ask("start", "twice", "-g", "2", "--no-wait")
    again = machine.ask("start", "twice", "-g", "2", "--no-wait")
    assert (again["job_id"], again["gpu_count"]) == (first["job_id"], 2)
    refused = machine.run("start", "twice", "-g", "4", check=False)
    assert "only a stopped one can be started" in refused.stderr
