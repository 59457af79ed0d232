"""What is killed or silent while reservations come and go on a real Kubernetes, and what it may not do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.fault_stories import FAULT_POINTS, LIFE, FaultPoint
from tests.support.kubernetes.access import Access
from tests.support.kubernetes.cluster import Cluster
from tests.support.kubernetes_machine import running_on_kubernetes
from tests.support.machine import Machine, wait_for

AT_ONCE = 8
OUR_SECONDS = 60
CLUSTER_SECONDS = 120
"""Its own programs ask a silent API server less and less often, at last once in 30 to 60 seconds."""


@pytest.fixture(scope="module")
def fault_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fault") / "point"


@pytest.fixture(scope="module")
def machine(
    access: Access,
    own_namespace: str,
    controllers: int,
    fault_file: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Machine]:
    folder = tmp_path_factory.mktemp("product")
    settings = {"GPU_DEV_FAULT_FILE": str(fault_file)}
    with running_on_kubernetes(access, own_namespace, folder, controllers=controllers, **settings) as running:
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
        return [event.kind for event in client.events(reservation) if event and event.kind != "progress"]


@pytest.mark.parametrize("point", FAULT_POINTS)
def test_the_controller_may_die_at_every_step(
    machine: Machine, access: Access, own_namespace: str, fault_file: Path, point: FaultPoint
) -> None:
    story = point.story
    fault_file.write_text(point.name)
    reservation = story.begin(machine, access)
    check_one(access, own_namespace, reservation)
    assert machine.ssh(reservation, "true").returncode == 0
    story.go_on(machine, reservation)
    machine.run("cancel", reservation, "--yes")
    wait_gone(access, own_namespace, reservation)
    story.come_back(machine, reservation)
    wait_for(lambda: not fault_file.exists(), f"{point.name} to be reached")
    wait_for(lambda: list_life(machine, reservation) == list(story.life), f"its life to be {story.life}")


@pytest.fixture(autouse=True)
def _leave_nothing(machine: Machine, fault_file: Path) -> Iterator[None]:
    yield
    fault_file.unlink(missing_ok=True)
    machine.run("cancel", "--all", "--yes", check=False)


def test_what_is_asked_for_at_once_is_doubled_nowhere(
    machine: Machine, access: Access, own_namespace: str
) -> None:
    with ThreadPoolExecutor(4) as pool:
        reservations = list(pool.map(lambda _: machine.reserve("-t", "h100"), range(AT_ONCE)))
    for reservation in reservations:
        check_one(access, own_namespace, reservation)
    machine.run("cancel", "--all", "--yes")
    for reservation in reservations:
        wait_gone(access, own_namespace, reservation)
        assert list_life(machine, reservation) == list(LIFE)


@pytest.mark.parametrize("seconds", [8, pytest.param(60, marks=pytest.mark.soak)])
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
        wait_for(lambda: machine.ssh(running, "echo still here").stdout == "still here\n", "its answer")
    finally:
        api_server.start()
    # The nodes count as lost until their kubelets speak again, which is the cluster's part of it.
    wait_for(lambda: machine.show(asked)["status"] == "active", "it to go on", CLUSTER_SECONDS + OUR_SECONDS)
    assert machine.show(running)["status"] == "active"
    check_one(access, own_namespace, asked)
    machine.run("cancel", "--all", "--yes")
    for reservation in (running, asked):
        wait_gone(access, own_namespace, reservation)


def is_unharmed(machine: Machine, running: str, asked: str) -> bool:
    first: dict[str, Any] = machine.show(running)
    second: dict[str, Any] = machine.show(asked)
    return first["status"] == "active" and second["status"] in {"pending", "queued", "preparing"}
