"""`kill -9` of the controller while it makes a gang, with one member written down and the other not yet."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpudev.client.config import Surroundings
from gpudev.client.ssh_keys import collect_public_keys
from gpudev.wire.jobs import SubmitRequest
from tests.support.machine import Machine, running_machine, wait_for

pytestmark = pytest.mark.long

KEY = "a gang"


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    fleet = tmp_path / "fleet.toml"
    fleet.write_text('[[nodes]]\ntype = "a100"\ncount = 2\ngpus = 2\n')
    with running_machine("--fleet", str(fleet)) as running:
        yield running


def test_a_gang_that_was_half_made_when_the_controller_died_is_made_whole(machine: Machine) -> None:
    with machine.client() as client:
        user = client.whoami().user_id
        reservation = str(uuid.uuid5(uuid.NAMESPACE_URL, f"gpu-dev/{user}/{KEY}/0"))
        obstacle = machine.state_dir / "servers" / f"{reservation[:8]}-1"
        # The second member is not there, and cannot be written down, while this leads nowhere.
        obstacle.symlink_to(machine.home / "nowhere")
        keys = collect_public_keys(Surroundings(machine.home, machine.home / "config.json"))
        request = SubmitRequest(
            gpu_type="a100", gpu_count=4, distributed=True, duration_hours=1, ssh_public_keys=list(keys)
        )
        assert client.reserve(request, idempotency_key=KEY).job_id == reservation
        controller = wait_for(lambda: stop_half_way(machine, reservation), "half a gang")
        obstacle.unlink()
        os.kill(controller, signal.SIGKILL)
        client.wait_until(reservation, ["active"], timeout=60)
    for rank in ("0", "1"):
        machine.run("connect", reservation, "--node", rank, "--", "ssh ${MULTINODE_HOSTS#*,} true")
    machine.run("cancel", reservation, "--yes")
    assert not list((machine.state_dir / "servers").iterdir()), "nothing of either try is left"


def stop_half_way(machine: Machine, reservation: str) -> int | None:
    """The controller, stopped while only the first member is written down; None if it was not there."""
    controller = machine.control_plane()["controller"]
    os.kill(controller, signal.SIGSTOP)
    if (machine.state_dir / "servers" / reservation[:8] / "record.json").exists():
        return controller
    os.kill(controller, signal.SIGCONT)
    return None
