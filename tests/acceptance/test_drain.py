"""A node is taken out of service on a machine that is in use, as its admin and its users meet it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.machine import Machine, on_database, running_machine, wait_for


@pytest.fixture
def machine(database: str) -> Iterator[Machine]:
    """Two nodes of four GPUs."""
    with running_machine("--fleet", "test", **on_database(database)) as running:
        yield running


def find_node(machine: Machine, name: str) -> dict[str, Any]:
    return next(node for node in machine.ask("admin", "nodes")["nodes"] if node["name"] == name)


def find_node_of(machine: Machine, reservation: str) -> str:
    nodes: list[dict[str, Any]] = machine.ask("admin", "nodes")["nodes"]
    return next(
        node["name"] for node in nodes for one in node["reservations"] if one["job_id"] == reservation
    )


def list_kinds(machine: Machine, reservation: str) -> list[str]:
    with machine.client() as client:
        return [event.kind for event in client.list_events(reservation)]


def test_one_runs_on_and_is_told_and_one_that_waits_starts_when_the_node_is_back(machine: Machine) -> None:
    stays = machine.reserve("--gpus", "4", "--hours", "2")
    node = find_node_of(machine, stays)
    free = next(name for name in ("t4-0", "t4-1") if name != node)
    assert f"Node {free} is drained: nothing runs there" in machine.run("admin", "drain", free).stdout

    waits = machine.submit("--gpus", "4", "--hours", "1")
    wait_for(lambda: machine.show(waits)["status"] == "queued", "it waits, though a node is empty")
    drained = machine.run("admin", "drain", node, "--reason", "new fans").stdout
    assert (
        f"Node {node} is being drained: nothing new is placed there. 1 reservation is still there" in drained
    )
    assert stays[:8] in drained

    file = wait_for(lambda: machine.ssh(stays, "cat WARN_NODE_LEAVES.txt").stdout, "the notice in the home")
    assert file.startswith(f"Node {node} is being taken out of service: new fans.")
    assert "node_leaves" in list_kinds(machine, stays)
    assert "is being taken out of service" in machine.show(stays)["warning"]
    refused = machine.run("extend", stays, "1", check=False)
    assert refused.returncode != 0
    assert f"Node {node} is being taken out of service: new fans." in refused.stderr
    wait_for(lambda: machine.show(waits).get("reason") == "no_nodes", "it is told why it waits")
    assert machine.show(stays)["status"] == "active"

    machine.run("admin", "undrain", free)
    wait_for(lambda: machine.show(waits)["status"] == "active", "it starts on the node that is back")
    assert find_node_of(machine, waits) == free
    machine.run("cancel", stays, "--yes")
    wait_for(lambda: find_node(machine, node).get("emptied_at"), "that the node is empty is noted")
    assert find_node(machine, node)["state"] == "drained"
