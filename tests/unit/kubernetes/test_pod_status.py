"""Every way in which a pod can stand still, and what its user is told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from gpudev.adapters.kubernetes.api_objects import Json
from gpudev.adapters.kubernetes.pod_status import PodStatus, find_last_end, find_oom, status_of
from gpudev.domain.server import Cause, ServerPhase
from gpudev.texts.fact import Fact
from gpudev.texts.sentences import say
from tests.support.kubernetes_values import NOON, at, make_own_pod, running, unschedulable, waiting

IMAGE = "registry.example/dev:1"
PULL = 'failed to pull and unpack image "registry.example/dev:1": '


def stands(status: Json, *, bound: bool = True, seconds: float = 0) -> PodStatus:
    return status_of(make_own_pod(status, bound=bound)).at(NOON + timedelta(seconds=seconds))


def words_of(told: Fact | None) -> str:
    return say(told) if told is not None else ""


def ended(reason: str, message: str = "") -> Json:
    return {"phase": "Failed", "reason": reason, "message": message}


def crashed(**terminated: Any) -> Json:
    return waiting("CrashLoopBackOff", restartCount=1, lastState={"terminated": terminated})


@pytest.mark.parametrize(
    "status, phase, cause, words",
    [
        pytest.param(
            ended("OutOfnvidia.com/gpu", "Node didn't have enough resource: nvidia.com/gpu"),
            ServerPhase.UNPLACEABLE,
            None,
            "The node refused the server: Node didn't have enough resource: nvidia.com/gpu.",
            id="the kubelet has no room",
        ),
        pytest.param(ended("OutOfcpu"), ServerPhase.UNPLACEABLE, None, "OutOfcpu", id="no CPU"),
        pytest.param(
            ended("Evicted", "The node was low on resource: ephemeral-storage. "),
            ServerPhase.FAILED,
            Cause.EVICTED,
            "The node was low on resource: ephemeral-storage.",
            id="evicted",
        ),
        pytest.param(
            ended("Terminated", "Pod was terminated in response to imminent node shutdown."),
            ServerPhase.FAILED,
            Cause.NODE_LOST,
            "imminent node shutdown.",
            id="the node shuts down",
        ),
        pytest.param(ended(""), ServerPhase.FAILED, None, "gives no reason", id="for no reason"),
        pytest.param(
            waiting("InvalidImageName", "couldn't parse image name"),
            ServerPhase.FAILED,
            Cause.IMAGE,
            f"The image {IMAGE} is not to be had: couldn't parse image name.",
            id="no name of an image",
        ),
        pytest.param(
            waiting("ErrImageNeverPull", "not present with pull policy of Never"),
            ServerPhase.FAILED,
            Cause.IMAGE,
            IMAGE,
            id="not on the node",
        ),
        pytest.param(
            waiting("ErrImagePull", PULL + "not found"),
            ServerPhase.FAILED,
            Cause.IMAGE,
            IMAGE,
            id="no such image",
        ),
        pytest.param(
            waiting("ImagePullBackOff", PULL + "pull access denied"),
            ServerPhase.FAILED,
            Cause.IMAGE,
            IMAGE,
            id="not ours to read",
        ),
        pytest.param(
            waiting("ErrImagePull", PULL + "dial tcp: i/o timeout"),
            ServerPhase.STARTING,
            None,
            f"The image {IMAGE} cannot be fetched; it is tried again.",
            id="the registry does not answer",
        ),
        pytest.param(
            crashed(exitCode=1, message="The image has no SSH server.\n"),
            ServerPhase.CRASHING,
            None,
            "The dev server ended with code 1: The image has no SSH server.",
            id="it ends again and again",
        ),
        pytest.param(
            crashed(exitCode=137, reason="OOMKilled"),
            ServerPhase.CRASHING,
            Cause.OUT_OF_MEMORY,
            "more memory than its share",
            id="for want of memory",
        ),
        pytest.param(
            waiting("CreateContainerConfigError", 'secret "x" not found'),
            ServerPhase.STARTING,
            None,
            'The container cannot be made: secret "x" not found.',
            id="something is missing",
        ),
        pytest.param(waiting("ContainerCreating"), ServerPhase.STARTING, None, "", id="it is being made"),
        pytest.param(running(), ServerPhase.STARTING, None, "", id="it runs"),
    ],
)
def test_a_pod_on_its_node(status: Json, phase: ServerPhase, cause: Cause | None, words: str) -> None:
    pod_status = stands(status)
    assert (pod_status.phase, pod_status.cause) == (phase, cause)
    assert words in words_of(pod_status.detail)
    assert bool(pod_status.detail) == bool(words)


@pytest.mark.parametrize(
    "status, bound, seconds, phase, words",
    [
        (unschedulable(), False, 1, ServerPhase.STARTING, ""),
        (unschedulable(), False, 2, ServerPhase.UNPLACEABLE, "no room on h100-1"),
        (waiting("ErrImagePull", "i/o timeout"), True, 299, ServerPhase.STARTING, "tried again"),
        (waiting("ErrImagePull", "i/o timeout"), True, 300, ServerPhase.FAILED, "within 5 minutes"),
        (waiting("CreateContainerError", "no"), True, 120, ServerPhase.FAILED, "cannot be made"),
        (running(), True, 10, ServerPhase.STARTING, "does not answer on SSH yet"),
    ],
)
def test_what_stays_as_it_is_comes_to_mean_something_else(
    status: Json, *, bound: bool, seconds: float, phase: ServerPhase, words: str
) -> None:
    pod_status = stands(status, bound=bound, seconds=seconds)
    assert pod_status.phase is phase
    assert words in words_of(pod_status.detail)


def test_the_time_of_the_next_change_is_known() -> None:
    pod_status = status_of(make_own_pod(unschedulable(), bound=False))
    assert pod_status.next_change(NOON) == NOON + timedelta(seconds=2)
    assert pod_status.next_change(NOON + timedelta(seconds=3)) is None


def test_a_pod_on_its_way_out_is_stopping_whatever_else_it_is() -> None:
    pod = make_own_pod(ended("Evicted"))
    pod["metadata"]["deletionTimestamp"] = at()
    assert status_of(pod).phase is ServerPhase.STOPPING


def test_a_container_that_was_started_again_has_a_last_end() -> None:
    last = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": at()}}
    words = words_of(find_last_end(make_own_pod(running(1, lastState=last))))
    assert "more memory than its share" in words
    assert "at 12:00 UTC" in words
    assert find_last_end(make_own_pod(running())) is None


@pytest.mark.parametrize(
    "state, expected",
    [
        ({"restartCount": 2, "lastState": {"terminated": {"reason": "OOMKilled", "finishedAt": at()}}}, 2),
        ({"restartCount": 2, "state": {"terminated": {"reason": "OOMKilled", "finishedAt": at()}}}, 3),
        ({"restartCount": 2, "lastState": {"terminated": {"reason": "Error", "finishedAt": at()}}}, 0),
        ({"restartCount": 0}, 0),
    ],
)
def test_an_end_for_want_of_memory_is_counted(state: Json, expected: int) -> None:
    pod = make_own_pod({"phase": "Running", "containerStatuses": [state]})
    assert find_oom(pod) == (expected, NOON if expected else None)
