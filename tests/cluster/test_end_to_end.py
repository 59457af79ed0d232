"""Reservations on a real Kubernetes, from `gpu-dev reserve` to nothing left, and what may come between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.kubernetes.access import Access
from tests.support.kubernetes.cluster import Cluster
from tests.support.kubernetes.images import EXIT
from tests.support.kubernetes_machine import running_on_kubernetes
from tests.support.machine import Machine, wait_for

SILENCE_SECONDS = 90


@pytest.fixture(scope="module")
def machine(
    access: Access, own_namespace: str, controllers: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Machine]:
    folder = tmp_path_factory.mktemp("product")
    with running_on_kubernetes(access, own_namespace, folder, controllers=controllers) as running:
        yield running


@pytest.fixture(autouse=True)
def _leave_nothing(machine: Machine) -> Iterator[None]:
    yield
    machine.run("cancel", "--all", "--yes", check=False)


def list_objects(access: Access, namespace: str, reservation: str) -> list[str]:
    """What is left of a reservation: all that bears its id, or leads to it."""
    found = access.get(
        "pods,services,secrets,configmaps,endpointslices,networkpolicies", f"--namespace={namespace}"
    )["items"]
    return [
        f"{one['kind']}/{one['metadata']['name']}"
        for one in found
        if reservation in str(one["metadata"].get("labels")) or reservation[:8] in one["metadata"]["name"]
    ]


def wait_ended(machine: Machine, reservation: str) -> dict[str, Any]:
    ended: dict[str, Any] = wait_for(
        lambda: (job := machine.show(reservation))["status"] in {"failed", "cancelled", "expired"} and job,
        f"the end of {reservation}",
    )
    return ended


def test_a_reservation_becomes_a_pod_to_log_in_to_and_leaves_nothing(
    machine: Machine, access: Access, own_namespace: str
) -> None:
    reservation = machine.reserve("-g", "2", "-t", "h100", "-H", "0.5", "--env", "COLOUR=blue and green")
    pod = access.get("pod", f"gpu-dev-{reservation[:8]}", f"--namespace={own_namespace}")
    assert pod["spec"]["nodeName"] == "node-a"
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "2"
    written = machine.ssh(reservation, "echo words > /home/dev/file && cat /home/dev/file && echo $COLOUR")
    assert written.stdout == "words\nblue and green\n", written.stderr
    assert machine.ssh(reservation, "sudo -n id -u").stdout == "0\n"
    machine.run("cancel", reservation, "--yes")
    assert machine.show(reservation)["status"] == "cancelled"
    wait_for(lambda: not list_objects(access, own_namespace, reservation), "nothing left of it")


def test_port_slots_are_used_once_and_replaced(machine: Machine, access: Access, own_namespace: str) -> None:
    def list_slots() -> set[str]:
        selector = "--selector=app.kubernetes.io/component=port-slot"
        found = access.get("services", f"--namespace={own_namespace}", selector)["items"]
        return {one["metadata"]["name"] for one in found}

    before = wait_for(lambda: len(slots := list_slots()) >= 2 and slots, "two slots")
    reservation = machine.reserve("-t", "h100")
    pod = access.get("pod", f"gpu-dev-{reservation[:8]}", f"--namespace={own_namespace}")
    used = pod["metadata"]["labels"]["gpu-dev/port-slot"]
    assert used in before
    machine.run("cancel", reservation, "--yes")
    after = wait_for(lambda: used not in (slots := list_slots()) and len(slots) >= 2 and slots, "a new slot")
    assert after - before


def test_an_image_that_is_not_there_fails_with_its_name(machine: Machine) -> None:
    wrong = "gpu-dev.test/no-such-image:1"
    reservation = machine.submit("-t", "h100", "--dockerimage", wrong)
    job = wait_ended(machine, reservation)
    assert (job["status"], job["reason"]) == ("failed", "image_unavailable")
    assert wrong in job["failure_reason"]


def test_an_image_that_cannot_run_our_start_fails_with_its_words(machine: Machine) -> None:
    reservation = machine.submit("-t", "h100", "--dockerimage", EXIT.name)
    job = wait_ended(machine, reservation)
    assert (job["status"], job["reason"]) == ("failed", "start_failed")
    assert "/bin/sh" in job["failure_reason"]


def test_a_pod_that_is_deleted_by_hand_ends_its_reservation(
    machine: Machine, access: Access, own_namespace: str
) -> None:
    reservation = machine.reserve("-t", "h100")
    access.kubectl("delete", "pod", f"gpu-dev-{reservation[:8]}", f"--namespace={own_namespace}")
    job = wait_ended(machine, reservation)
    assert (job["status"], job["reason"]) == ("failed", "pod_deleted")
    wait_for(lambda: not list_objects(access, own_namespace, reservation), "nothing left of it")


@pytest.fixture
def two_alike(machine: Machine, access: Access) -> Iterator[None]:
    """Both nodes with GPUs of one type."""
    access.kubectl("label", "--overwrite", "node", "node-b", "gpu-type=h100")
    try:
        wait_for(lambda: machine.ask("avail")["availability"]["a100"]["total"] == 0, "another type")
        yield
    finally:
        machine.run("cancel", "--all", "--yes", check=False)
        access.kubectl("label", "--overwrite", "node", "node-b", "gpu-type=a100")


@pytest.mark.usefixtures("two_alike")
def test_a_gang_has_two_nodes_that_reach_each_other_and_leaves_nothing(
    machine: Machine, access: Access, own_namespace: str
) -> None:
    reservation = machine.reserve("-t", "h100", "-g", "16", "--distributed")
    assert [node["rank"] for node in machine.show(reservation)["nodes"]] == [0, 1]
    words = "getent hosts $MASTER_ADDR && ssh ${MULTINODE_HOSTS#*,} 'echo $RANK $WORLD_SIZE'"
    first = machine.run("connect", reservation, "--node", "0", "--", words)
    address, told = first.stdout.splitlines()
    pod = access.get("pod", f"gpu-dev-{reservation[:8]}", f"--namespace={own_namespace}")
    assert address.split()[0] == pod["status"]["podIP"]
    assert told == "1 2"
    back = machine.run("connect", reservation, "--node", "1", "--", "ssh $MASTER_ADDR 'echo $GPU_DEV_NODE'")
    assert back.stdout == f"{pod['spec']['nodeName']}\n"
    machine.run("cancel", reservation, "--yes")
    wait_for(lambda: not list_objects(access, own_namespace, reservation), "nothing left of it")


def test_a_cordoned_node_gets_no_reservation_until_it_is_back(machine: Machine, access: Access) -> None:
    access.cordon("node-b")
    try:
        wait_for(lambda: machine.ask("avail")["availability"]["a100"]["available"] == 0, "no room")
        reservation = machine.submit("-t", "a100")
        waiting = wait_for(lambda: (job := machine.show(reservation))["status"] == "queued" and job, "queue")
        assert waiting["reason"] == "no_nodes"
    finally:
        access.uncordon("node-b")
    wait_for(lambda: machine.show(reservation)["status"] == "active", "the node's return")


def test_a_drained_node_keeps_its_reservation_and_gets_no_other(machine: Machine) -> None:
    stays = machine.reserve("-t", "a100")
    machine.run("admin", "drain", "node-b", "--reason", "new fans")
    try:
        told = wait_for(lambda: machine.ssh(stays, "cat WARN_NODE_LEAVES.txt").stdout, "the notice")
        assert told.startswith("Node node-b is being taken out of service: new fans.")
        waits = machine.submit("-t", "a100")
        wait_for(lambda: machine.show(waits).get("reason") == "no_nodes", "it is told why it waits")
        assert machine.show(stays)["status"] == "active"
    finally:
        machine.run("admin", "undrain", "node-b")
    wait_for(lambda: machine.show(waits)["status"] == "active", "the node's return")


def test_a_silent_node_keeps_its_reservation_with_a_warning(
    machine: Machine, access: Access, cluster: Cluster
) -> None:
    reservation = machine.reserve("-t", "a100")
    cluster.nodes["node-b"].kubelet.stop()
    try:
        job = wait_for(
            lambda: "node-b" in (job := machine.show(reservation))["current_detailed_status"] and job,
            "a warning",
            SILENCE_SECONDS,
        )
        assert job["status"] == "active"
        assert "SSH still answers" in job["current_detailed_status"]
        assert machine.ssh(reservation, "echo still here").stdout == "still here\n"
    finally:
        cluster.start_kubelet("node-b")
    wait_for(
        lambda: machine.show(reservation)["current_detailed_status"] == "The dev server answers on SSH.",
        "the end of the warning",
    )


def test_a_node_that_is_removed_ends_its_reservation(
    machine: Machine, access: Access, cluster: Cluster, own_namespace: str
) -> None:
    reservation = machine.reserve("-t", "a100")
    cluster.nodes["node-b"].kubelet.stop()
    try:
        access.remove_node("node-b")
        job = wait_ended(machine, reservation)
        assert (job["status"], job["reason"]) == ("failed", "node_lost")
        assert "node-b" in job["failure_reason"]
        wait_for(lambda: not list_objects(access, own_namespace, reservation), "nothing left of it")
    finally:
        cluster.start_kubelet("node-b")
