"""`kill -9` of the controller at every step of a stop: it goes on, and nothing on the disk is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.machine import Machine, running_machine, wait_for

POINTS = [
    f"{when}_{what}" for what in ("record", "list_home", "delete_server") for when in ("before", "after")
]


@pytest.fixture(scope="module")
def fault_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fault") / "point"


@pytest.fixture(scope="module")
def machine(fault_file: Path) -> Iterator[Machine]:
    with running_machine("--fleet", "test", GPU_DEV_FAULT_FILE=str(fault_file)) as running:
        yield running


@pytest.mark.long
@pytest.mark.parametrize("point", POINTS)
def test_a_stop_goes_on_after_a_kill(machine: Machine, fault_file: Path, point: str) -> None:
    name = point.replace("_", "-")
    reservation = machine.reserve("-t", "t4", "-g", "4", "--name", name, "--disk", "work")
    machine.ssh(reservation, f"echo {point} > ~/{point} && sync")
    fault_file.write_text(point)
    machine.run("stop", name, "--yes")
    wait_for(lambda: not fault_file.exists(), f"{point} to be reached")
    assert machine.ask("start", name)["status"] == "active"
    assert machine.ssh(name, f"cat ~/{point}").stdout.strip() == point
    machine.run("cancel", name, "--yes")
    wait_for(lambda: has_all_gpus(machine), "the GPUs")


def has_all_gpus(machine: Machine) -> bool:
    room = machine.ask("avail")["availability"]["t4"]
    return bool(room["available"] == room["total"])
