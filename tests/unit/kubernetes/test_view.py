"""The view of a cluster, told of changes one by one: what it shows, and whom it tells."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from gpudev.adapters.kubernetes.api_objects import Json
from gpudev.adapters.kubernetes.config import ZONE_LABEL
from gpudev.adapters.kubernetes.facts import read_node
from gpudev.adapters.kubernetes.manifests.network import make_own_service, make_port_slot
from gpudev.adapters.kubernetes.view import Outside, View
from gpudev.domain.capacity import Node
from gpudev.domain.catalogue import DEFAULT_CATALOGUE
from gpudev.domain.names import NodeName, ReservationId
from gpudev.domain.server import Cause, ObservedServer, ServerPhase, SshAddress
from gpudev.ports.cluster import CapacityChanged, ClusterChange, ServerChanged
from tests.support.kubernetes_values import (
    HOST_KEY,
    NAMESPACE,
    NOON,
    RESERVATION,
    at,
    made,
    make_node,
    make_own_pod,
    make_spec,
    running,
    unschedulable,
    waiting,
)
from tests.support.words import words_of

SLOT = "gpu-dev-slot-0a1b2c3d"


@dataclass
class World:
    """A view, what it said, and a clock."""

    now: datetime = NOON
    told: list[ClusterChange] = field(default_factory=list)
    looks: list[tuple[datetime, ReservationId]] = field(default_factory=list)
    node_looks: list[tuple[datetime, NodeName]] = field(default_factory=list)
    view: View = field(init=False)

    def __post_init__(self) -> None:
        outside = Outside(
            now=lambda: self.now,
            tell=self.told.append,
            look_again=lambda moment, owner: self.looks.append((moment, owner)),
            look_at_node_again=lambda moment, name: self.node_looks.append((moment, name)),
            pod_changed=lambda _owner: None,
        )
        self.view = View(NAMESPACE, DEFAULT_CATALOGUE, outside)

    @property
    def server(self) -> ObservedServer:
        return self.view.snapshot().servers[RESERVATION]

    @property
    def node(self) -> Node:
        (node,) = self.view.snapshot().nodes
        return node

    def answer(self, *, answers: bool = True) -> None:
        pod = self.view.find_pod(RESERVATION)
        assert pod is not None
        self.view.note_answer(pod, answers=answers)


@pytest.fixture
def world() -> World:
    world = World()
    world.view.nodes.put(make_node())
    world.view.services.put(make_slot())
    world.told.clear()
    return world


def make_slot(name: str = SLOT) -> Json:
    slot = made(make_port_slot(name, NAMESPACE), uid=f"uid-{name}")
    slot["spec"] = {**slot["spec"], "ports": [{"nodePort": 30123}]}
    return slot


def make_foreign_pod(gpus: int, phase: str = "Running") -> Json:
    resources = {"requests": {"cpu": "1", "nvidia.com/gpu": str(gpus)}}
    return {
        "metadata": {"name": "other", "namespace": "others", "uid": "uid-other", "resourceVersion": "1"},
        "spec": {"nodeName": "h100-1", "containers": [{"resources": resources}]},
        "status": {"phase": phase},
    }


def test_a_node_has_what_nobody_has_taken(world: World) -> None:
    world.view.pods.put(make_foreign_pod(3))
    assert CapacityChanged("h100") in world.told
    world.view.pods.put(make_own_pod(bound=False))
    assert (world.node.slots, world.node.free_slots) == (8, 3)


def test_what_has_ended_takes_no_room(world: World) -> None:
    world.view.pods.put(make_foreign_pod(3, "Succeeded"))
    assert world.node.free_slots == 8


def test_a_cpu_node_is_counted_by_its_users() -> None:
    world = World()
    node = make_node("cpu-1")
    node["metadata"]["labels"] = {"gpu-type": "cpu-x86"}
    world.view.nodes.put(node)
    world.view.pods.put(make_own_pod(gpu_type="cpu-x86", gpus=0, node="cpu-1"))
    assert (world.node.slots, world.node.free_slots) == (3, 2)


@pytest.mark.parametrize(
    "spec, is_schedulable",
    [
        ({}, True),
        ({"unschedulable": True}, False),
        ({"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]}, True),
        ({"taints": [{"key": "team", "effect": "NoSchedule"}]}, False),
        ({"taints": [{"key": "team", "effect": "PreferNoSchedule"}]}, True),
    ],
)
def test_a_node_takes_servers_unless_it_says_otherwise(spec: Json, *, is_schedulable: bool) -> None:
    world = World()
    world.view.nodes.put(make_node(**spec))
    assert world.node.is_schedulable is is_schedulable


def test_a_node_that_is_not_ready_takes_no_servers() -> None:
    world = World()
    world.view.nodes.put(make_node(ready="Unknown"))
    assert not world.node.is_schedulable


HANDLERS = [
    {"name": "runc", "features": {"userNamespaces": False}},
    {"name": "", "features": {"userNamespaces": True}},
]


@pytest.mark.parametrize(
    "kernel, handlers, is_supported",
    [
        ("6.8.0-1021-aws", HANDLERS, True),
        ("6.1.0-37-cloud-amd64", HANDLERS, False),
        ("6.8.0", HANDLERS[:1], False),
        ("6.8.0", [{"name": ""}], False),
        ("6.8.0", None, False),
        ("", HANDLERS, False),
        ("unknown", HANDLERS, False),
    ],
)
def test_a_node_has_user_namespaces_if_its_runtime_and_its_kernel_do(
    kernel: str, handlers: list[Json] | None, *, is_supported: bool
) -> None:
    node = make_node()
    node["status"] |= {"nodeInfo": {"kernelVersion": kernel}, "runtimeHandlers": handlers}
    assert read_node(node, DEFAULT_CATALOGUE, ZONE_LABEL).has_user_namespaces is is_supported


@pytest.mark.parametrize("told, expected", [("900Gi", 900), ("1932735283200", 1800), ("", 0)])
def test_a_node_has_the_local_disk_that_it_reports(told: str, expected: int) -> None:
    node = make_node()
    node["status"]["allocatable"] = {"ephemeral-storage": told} if told else {}
    assert read_node(node, DEFAULT_CATALOGUE, ZONE_LABEL).storage_gib == expected


def test_a_server_is_ready_once_it_answered_at_the_address_of_users(world: World) -> None:
    world.view.pods.put(make_own_pod(running()))
    assert (world.server.phase, world.server.address) == (ServerPhase.STARTING, None)
    world.answer()
    assert world.server.phase is ServerPhase.READY
    assert world.server.address == SshAddress("10.0.0.7", 30123)
    assert world.server.host_keys == (HOST_KEY,)
    assert world.told[-1] == ServerChanged(RESERVATION)


def test_a_container_that_was_started_again_has_to_answer_again(world: World) -> None:
    world.view.pods.put(make_own_pod(running()))
    world.answer()
    last = {"terminated": {"exitCode": 1, "finishedAt": at()}}
    world.view.pods.put(make_own_pod(running(1, lastState=last), version=2))
    assert world.server.phase is ServerPhase.STARTING
    assert "started again" in words_of(world.server.warning)


def test_the_same_again_is_told_to_nobody(world: World) -> None:
    world.view.pods.put(make_own_pod(running()))
    world.told.clear()
    world.view.pods.put(make_own_pod(running(), version=2))
    assert world.told == []


def test_room_that_comes_back_is_told_once_and_room_that_was_given_is_not_told(world: World) -> None:
    world.view.pods.put(make_own_pod(bound=False))
    assert world.node.free_slots < 8
    assert CapacityChanged("h100") not in world.told
    world.view.pods.drop(make_own_pod(bound=False))
    assert world.told.count(CapacityChanged("h100")) == 1
    assert world.node.free_slots == 8


def test_what_is_ended_for_want_of_memory_inside_is_counted_with_what_the_cluster_says(world: World) -> None:
    world.view.pods.put(make_own_pod(running()))
    pod = world.view.find_pod(make_spec().reservation_id)
    assert pod is not None
    world.view.note_ooms(pod, 0, NOON)
    assert (world.server.oom_kills, world.server.last_oom_at) == (0, None)
    world.view.note_ooms(pod, 2, NOON)
    world.view.note_ooms(pod, 2, NOON + timedelta(minutes=1))
    assert (world.server.oom_kills, world.server.last_oom_at) == (2, NOON)
    ended = {"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": at(60)}}
    world.view.pods.put(make_own_pod(running(restarts=1, lastState=ended), version=2))
    assert (world.server.oom_kills, world.server.last_oom_at) == (3, NOON + timedelta(minutes=1))


def turn_away(world: World, uid: str) -> None:
    """One more pod for which the scheduler finds no room."""
    pod = make_own_pod(unschedulable(), bound=False)
    pod["metadata"]["uid"] = uid
    world.view.pods.put(pod)
    world.now = max(moment for moment, _ in world.looks)
    world.view.refresh_server(RESERVATION)


def test_a_pod_that_the_scheduler_turns_away_becomes_unplaceable_and_takes_no_room(world: World) -> None:
    turn_away(world, "uid-1")
    assert world.server.phase is ServerPhase.UNPLACEABLE
    assert world.node.free_slots == 1
    ((until, name),) = world.node_looks
    world.view.pods.drop(make_own_pod())
    assert world.node.free_slots == 1, "it is tried again at once"
    world.now, world.told[:] = until, []
    world.view.refresh_node(name)
    assert world.node.free_slots == 8
    assert CapacityChanged("h100") in world.told


def test_a_node_that_refuses_again_and_again_is_spared_ever_longer(world: World) -> None:
    pauses = []
    for number in range(9):
        turn_away(world, f"uid-{number}")
        pauses.append((world.node_looks[-1][0] - world.now).total_seconds())
        pod = make_own_pod()
        pod["metadata"]["uid"] = f"uid-{number}"
        world.view.pods.drop(pod)
    assert pauses == [5, 10, 20, 40, 80, 160, 300, 300, 300]


def test_a_node_that_somebody_leaves_is_tried_again_at_once(world: World) -> None:
    world.view.pods.put(make_foreign_pod(3))
    turn_away(world, "uid-1")
    assert world.node.free_slots == 1
    world.view.pods.drop(make_foreign_pod(3))
    assert world.node.free_slots == 8


@pytest.mark.parametrize("change", ["cordoned", "gone"])
def test_a_node_that_takes_nobody_any_more_turns_a_waiting_pod_away(world: World, change: str) -> None:
    world.view.pods.put(make_own_pod(bound=False))
    if change == "gone":
        world.view.nodes.drop(make_node())
    else:
        world.view.nodes.put(make_node(version=2, unschedulable=True))
    assert world.server.phase is ServerPhase.UNPLACEABLE


def test_a_server_is_lost_with_its_node(world: World) -> None:
    world.view.pods.put(make_own_pod(running()))
    world.answer()
    world.view.nodes.drop(make_node())
    assert (world.server.phase, world.server.cause) == (ServerPhase.FAILED, Cause.NODE_LOST)
    assert "h100-1" in words_of(world.server.detail)


def test_a_node_that_was_never_seen_may_be_new(world: World) -> None:
    world.view.pods.put(make_own_pod(running(), node="h100-2", version=20))
    assert world.server.phase is ServerPhase.STARTING
    world.view.nodes.reach("20")
    world.view.refresh_server(RESERVATION)
    assert (world.server.phase, world.server.cause) == (ServerPhase.FAILED, Cause.NODE_LOST)


def test_a_silent_node_is_a_warning_that_says_whether_ssh_answers(world: World) -> None:
    world.view.pods.put(make_own_pod(running()))
    world.answer()
    world.view.nodes.put(make_node(version=2, ready="Unknown"))
    assert world.server.phase is ServerPhase.READY
    assert words_of(world.server.warning).endswith("since 12:00 UTC; SSH still answers.")
    world.answer(answers=False)
    assert words_of(world.server.warning).endswith("SSH does not answer.")
    world.view.nodes.put(make_node(version=3))
    assert words_of(world.server.warning) == ""


def test_a_service_that_was_removed_is_a_warning(world: World) -> None:
    world.view.pods.put(make_own_pod(running()))
    world.answer()
    world.view.services.drop(make_slot())
    assert SLOT in words_of(world.server.warning)


def make_event(reason: str, message: str, seconds: float) -> Json:
    return {
        "metadata": {
            "name": f"event-{seconds}",
            "namespace": NAMESPACE,
            "uid": reason,
            "resourceVersion": "1",
        },
        "involvedObject": {"uid": "uid-1"},
        "reason": reason,
        "message": message,
        "lastTimestamp": at(seconds),
    }


def test_what_the_cluster_says_of_a_start_is_told_until_something_newer_is_said(world: World) -> None:
    world.view.pods.put(make_own_pod(waiting("ContainerCreating")))
    world.view.events.put(make_event("Pulling", 'Pulling image "registry.example/dev:1"', 1))
    assert words_of(world.server.progress) == "Fetching the image: registry.example/dev:1."
    world.view.events.put(make_event("Scheduled", "An older word", 0))
    assert words_of(world.server.progress) == "Fetching the image: registry.example/dev:1."
    world.view.events.put(make_event("Pulled", "Successfully pulled image", 2))
    assert words_of(world.server.progress) == ""


def test_a_port_slot_is_free_until_a_pod_has_it(world: World) -> None:
    assert world.view.snapshot().port_slots == (SLOT,)
    world.view.pods.put(make_own_pod())
    assert world.view.snapshot().port_slots == ()


def test_leftovers_are_what_bears_the_id_of_a_reservation(world: World) -> None:
    world.view.pods.put(make_own_pod())
    world.view.services.put(made(make_own_service(make_spec(), NAMESPACE), uid="uid-own"))
    world.view.pods.put(make_foreign_pod(1))
    left = {(one.kind, one.uid, one.reservation_id) for one in world.view.list_leftovers()}
    assert left == {("pods", "uid-1", RESERVATION), ("services", "uid-own", RESERVATION)}


def test_a_pod_with_our_labels_in_another_namespace_is_not_ours(world: World) -> None:
    pod = make_own_pod()
    pod["metadata"]["namespace"] = "others"
    world.view.pods.put(pod)
    assert world.view.snapshot().servers == {}


class TestShelf:
    """What is newer stays, whichever way it came."""

    def test_an_older_version_changes_nothing(self, world: World) -> None:
        world.view.pods.put(make_own_pod(running(), version=5))
        world.view.pods.put(make_own_pod(unschedulable(), version=4))
        assert world.view.find_pod(RESERVATION) == world.view.put_pod(make_own_pod(running(), version=5))

    def test_what_is_gone_does_not_come_back_by_a_late_answer(self, world: World) -> None:
        world.view.pods.put(make_own_pod())
        world.view.pods.drop(make_own_pod())
        world.view.pods.put(make_own_pod(version=3))
        assert world.view.snapshot().servers == {}

    def test_the_deletion_of_an_earlier_one_leaves_the_next_of_its_name(self, world: World) -> None:
        later = make_own_pod(version=7)
        later["metadata"]["uid"] = "uid-2"
        world.view.pods.put(later)
        world.view.pods.drop(make_own_pod())
        assert world.server.uid == "uid-2"

    def test_a_new_list_takes_away_what_is_not_in_it_but_not_what_was_made_since(self, world: World) -> None:
        world.view.pods.put(make_foreign_pod(3))
        world.view.pods.put(make_own_pod(version=12))
        world.view.pods.replace_all([], "10")
        assert world.node.free_slots == 6
        assert world.server.nodes == (NodeName("h100-1"),)

    def test_a_restarted_watch_shows_what_is_there(self, world: World) -> None:
        world.view.pods.put(make_own_pod(running()))
        world.view.pods.replace_all([make_own_pod(running(), version=9)], "10")
        assert world.server.phase is ServerPhase.STARTING
        world.now += timedelta(seconds=30)
        world.view.refresh_server(RESERVATION)
        assert "does not answer" in words_of(world.server.progress)
