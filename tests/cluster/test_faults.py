"""What is killed or silent while reservations come and go on a real Kubernetes, and what it may not do."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gpudev.adapters.local.control_plane.readiness import ENVIRONMENT_NAME
from tests.support.kubernetes.access import Access
from tests.support.kubernetes.cluster import Cluster
from tests.support.kubernetes_machine import running_on_kubernetes
from tests.support.machine import Machine, wait_for

FAULT_POINTS = [
    f"{when}_{what}"
    for what in (
        "create_server",
        "record",
        "look_again",
        "delete_server",
        "discard_port_slot",
    )
    for when in ("before", "after")
]
LIFE = ["submitted", "placed", "active", "cancelled", "cleaned"]
AT_ONCE = 8


@pytest.fixture(scope="module")
def own_namespace(access: Access) -> Iterator[str]:
    with access.namespace() as name:
        yield name


@pytest.fixture(scope="module")
def fault_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fault") / "point"


@pytest.fixture(scope="module")
def machine(
    access: Access, own_namespace: str, fault_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Machine]:
    folder = tmp_path_factory.mktemp("product")
    settings = {"GPU_DEV_FAULT_FILE": str(fault_file), "GPU_DEV_API_WORKERS": "2"}
    with running_on_kubernetes(access, own_namespace, folder, **settings) as running:
        yield running


def list_objects(access: Access, namespace: str, kinds: str, reservation: str) -> list[str]:
    """All that bears the name or the id of a reservation."""
    found = access.get(kinds, f"--namespace={namespace}")["items"]
    return [
        one["metadata"]["name"]
        for one in found
        if reservation in str(one["metadata"].get("labels")) or reservation[:8] in one["metadata"]["name"]
    ]


def check_one(access: Access, namespace: str, reservation: str) -> None:
    for kind in ("pods", "secrets"):
        assert list_objects(access, namespace, kind, reservation) == [f"gpu-dev-{reservation[:8]}"], kind


def wait_gone(access: Access, namespace: str, reservation: str) -> None:
    kinds = "pods,services,secrets,endpointslices,networkpolicies"
    wait_for(lambda: not list_objects(access, namespace, kinds, reservation), "nothing left of it")


def list_life(machine: Machine, reservation: str) -> list[str]:
    with machine.client() as client:
        return [event.kind for event in client.events(reservation) if event]


@pytest.mark.parametrize("point", FAULT_POINTS)
def test_the_controller_may_die_at_every_step(
    machine: Machine, access: Access, own_namespace: str, fault_file: Path, point: str
) -> None:
    fault_file.write_text(point)
    reservation = machine.reserve("-t", "h100", "-g", "2")
    check_one(access, own_namespace, reservation)
    assert machine.ssh(reservation, "true").returncode == 0
    machine.run("cancel", reservation, "--yes")
    assert not fault_file.exists(), f"{point} was never reached"
    wait_gone(access, own_namespace, reservation)
    assert list_life(machine, reservation) == LIFE


@pytest.fixture(autouse=True)
def _leave_nothing(machine: Machine, fault_file: Path) -> Iterator[None]:
    yield
    fault_file.unlink(missing_ok=True)
    machine.run("cancel", "--all", "--yes", check=False)


@contextmanager
def second_controller(machine: Machine) -> Iterator[subprocess.Popen[bytes]]:
    """Another process with the command line and the settings of the first, but a child of this one."""
    first = Path(f"/proc/{machine.control_plane()['controller']}")
    command = first.joinpath("cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    variables = first.joinpath("environ").read_bytes().rstrip(b"\0").split(b"\0")
    environment = dict(os.fsdecode(one).split("=", 1) for one in variables)
    environment["GPU_DEV_PARENT_PID"] = str(os.getpid())
    del environment[ENVIRONMENT_NAME]
    log = machine.state_dir / "second-controller.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, cwd=machine.home)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)


def test_two_controllers_and_two_api_processes_double_nothing(
    machine: Machine, access: Access, own_namespace: str
) -> None:
    with second_controller(machine) as second, ThreadPoolExecutor(4) as pool:
        reservations = list(pool.map(lambda _: machine.reserve("-t", "h100"), range(AT_ONCE)))
        assert second.poll() is None
        for reservation in reservations:
            check_one(access, own_namespace, reservation)
        machine.run("cancel", "--all", "--yes")
        for reservation in reservations:
            wait_gone(access, own_namespace, reservation)
            assert list_life(machine, reservation) == LIFE
        assert second.poll() is None


@pytest.mark.parametrize("seconds", [8, pytest.param(60, marks=pytest.mark.long)])
def test_an_api_server_that_is_silent_ends_and_fails_nothing(
    machine: Machine, access: Access, cluster: Cluster, own_namespace: str, seconds: int
) -> None:
    running = machine.reserve("-t", "h100")
    api_server = cluster.control_plane.api_server
    api_server.stop()
    try:
        asked = machine.submit("-t", "h100")
        until = time.monotonic() + seconds
        wait_for(
            lambda: time.monotonic() > until or not is_unharmed(machine, running, asked), "the outage", 90
        )
        assert is_unharmed(machine, running, asked)
        assert machine.ssh(running, "echo still here").stdout == "still here\n"
    finally:
        api_server.start()
    wait_for(lambda: machine.show(asked)["status"] == "active", "work to go on")
    assert machine.show(running)["status"] == "active"
    check_one(access, own_namespace, asked)
    machine.run("cancel", "--all", "--yes")
    for reservation in (running, asked):
        wait_gone(access, own_namespace, reservation)


def is_unharmed(machine: Machine, running: str, asked: str) -> bool:
    first: dict[str, Any] = machine.show(running)
    second: dict[str, Any] = machine.show(asked)
    return first["status"] == "active" and second["status"] in {"pending", "queued", "preparing"}
