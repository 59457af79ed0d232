"""A dev server that takes every port it can get, on the whole product: by command line and SSH."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.machine import Machine, on_database, running_machine, wait_for
from tests.support.port_taker import PROGRAM, PYTHON_FOLDER, find_free_range, take_ports_command

GPUS = 8
"""Of the fleet `test`: so many ports are held."""
PORTS = 20

pytestmark = pytest.mark.long


@contextmanager
def taking_ports(machine: Machine, reservation: str, ports: range) -> Iterator[subprocess.Popen[str]]:
    gpu_dev = Path(sys.executable).with_name("gpu-dev")
    command = [gpu_dev, "connect", reservation, "--", take_ports_command(ports)]
    with (
        PROGRAM.open() as program,
        subprocess.Popen(
            command, env=machine.environment, stdin=program, stdout=subprocess.PIPE, text=True
        ) as hostile,
    ):
        try:
            yield hostile
        finally:
            hostile.kill()


def read_count(hostile: subprocess.Popen[str], expected: int) -> None:
    assert hostile.stdout is not None
    while int(hostile.stdout.readline()) != expected:
        pass


def test_a_dev_server_that_takes_every_port_stops_nobody_else(database: str) -> None:
    ports = find_free_range(PORTS)
    settings = {
        "GPU_DEV_SSH_PORTS": f"{ports.start}-{ports.stop - 1}",
        "GPU_DEV_READ_ONLY_PATHS": PYTHON_FOLDER,
        **on_database(database),
    }
    with running_machine("--fleet", "test", **settings) as machine:
        reservation = machine.reserve("-t", "t4", "--name", "hostile")
        with taking_ports(machine, reservation, ports) as hostile:
            read_count(hostile, PORTS - GPUS)
            honest = machine.reserve("-t", "t4", "--name", "honest")
            assert machine.ssh(honest, "exit 7").returncode == 7
            # While gpu-dev is down nobody holds its ports. It says so afterwards, instead of just waiting.
            machine.run("down", "--yes", "--keep-servers", "--state-dir", str(machine.state_dir))
            read_count(hostile, PORTS - 2)
            machine.up("--fleet", "test")
            late = machine.submit("-t", "t4", "--name", "late")
            words = f"other programs on this machine use all ports from {ports.start} to {ports.stop - 1}"
            wait_for(lambda: words in machine.show(late)["current_detailed_status"], "the reason")
            machine.run("cancel", "hostile", "--yes")
            wait_for(lambda: machine.show(late)["status"] == "active", "a port")
