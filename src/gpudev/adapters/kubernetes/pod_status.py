"""The phase of one of our pods by its own status, with the fact that users are told.

Kubernetes has many words for what went wrong. Each is here once, with what it means for the reservation.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from gpudev.adapters.kubernetes.api_objects import NODE, Json, annotations_of
from gpudev.domain.names import make_printable
from gpudev.domain.server import Cause, ServerPhase
from gpudev.texts.fact import Fact, fact

_UNSCHEDULABLE_FOR = timedelta(seconds=2)
"""The scheduler may still be counting a pod that has just gone; then it tries again by itself."""
_PULL_FAILS_FOR = timedelta(minutes=5)
_CONFIGURATION_FAILS_FOR = timedelta(minutes=2)
_QUIET_FOR = timedelta(seconds=10)

_REFUSED_BY_NODE = ("OutOf", "NodeAffinity", "NodePorts", "UnexpectedAdmissionError", "PodVerificationFailed")
_NODE_WENT_DOWN = frozenset({"Terminated", "Shutdown", "NodeShutdown", "NodeLost"})
_BAD_IMAGE = frozenset({"InvalidImageName", "ErrImageNeverPull", "ImageInspectError"})
_PULL_FAILED = frozenset({"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"})
_HOPELESS_PULL = ("not found", "manifest unknown", "denied", "unauthorized", "authentication required")
_BAD_CONFIGURATION = frozenset({"CreateContainerConfigError", "CreateContainerError"})
_OUT_OF_MEMORY = "OOMKilled"
_LONGEST_WORDS = 300


@dataclass(frozen=True, slots=True)
class PodStatus:
    """Where a pod is by its own status; if nothing changes until `until`, it is where `then` says."""

    phase: ServerPhase
    detail: Fact | None = None
    cause: Cause | None = None
    until: datetime | None = None
    then: PodStatus | None = None

    def at(self, now: datetime) -> PodStatus:
        if self.then is not None and self.until is not None and now >= self.until:
            return self.then.at(now)
        return self

    def next_change(self, now: datetime) -> datetime | None:
        current = self.at(now)
        return current.until if current.then is not None else None


def status_of(pod: Json) -> PodStatus:
    status = pod.get("status", {})
    if "deletionTimestamp" in pod["metadata"]:
        return PodStatus(ServerPhase.STOPPING)
    match status.get("phase", "Pending"):
        case "Failed" | "Succeeded":
            return _ended(pod)
        case "Pending" if not pod["spec"].get("nodeName"):
            return _unbound(pod)
        case _:
            return _on_its_node(pod)


def _ended(pod: Json) -> PodStatus:
    status = pod["status"]
    reason, message = status.get("reason", ""), _shorten(status.get("message", ""))
    if reason.startswith(_REFUSED_BY_NODE):
        return PodStatus(ServerPhase.UNPLACEABLE, fact("node_refused_server", words=message or reason))
    if reason == "Evicted":
        told = fact("cluster_said", words=message) if message else fact("evicted_without_reason")
        return PodStatus(ServerPhase.FAILED, told, Cause.EVICTED)
    if reason in _NODE_WENT_DOWN:
        told = fact("cluster_said", words=message) if message else fact("node_shut_down")
        return PodStatus(ServerPhase.FAILED, told, Cause.NODE_LOST)
    last = _container_of(pod).get("state", {}).get("terminated")
    if last and not message and not reason:
        cause = Cause.OUT_OF_MEMORY if last.get("reason") == _OUT_OF_MEMORY else None
        return PodStatus(ServerPhase.FAILED, fact("container_ended", how=_how_it_ended(last)), cause)
    return PodStatus(ServerPhase.FAILED, fact("pod_ended", words=message or reason))


def _unbound(pod: Json) -> PodStatus:
    scheduled = find_condition(pod, "PodScheduled")
    starting = PodStatus(ServerPhase.STARTING)
    if scheduled.get("reason") != "Unschedulable":
        return starting
    words = _shorten(scheduled.get("message", ""))
    why = fact("scheduler_found_no_room", node=annotations_of(pod).get(NODE, ""), words=words)
    since = read_time(scheduled.get("lastTransitionTime"))
    return _unless_within(since, _UNSCHEDULABLE_FOR, starting, PodStatus(ServerPhase.UNPLACEABLE, why))


def _on_its_node(pod: Json) -> PodStatus:
    container = _container_of(pod)
    waiting = container.get("state", {}).get("waiting")
    if waiting is not None:
        return _waiting(pod, waiting)
    running = container.get("state", {}).get("running")
    if running is None:
        return PodStatus(ServerPhase.STARTING)
    quiet = PodStatus(ServerPhase.STARTING, fact("container_silent"))
    since = read_time(running.get("startedAt"))
    return _unless_within(since, _QUIET_FOR, PodStatus(ServerPhase.STARTING), quiet)


def _waiting(pod: Json, waiting: Json) -> PodStatus:
    reason, message = waiting.get("reason", ""), _shorten(waiting.get("message", ""))
    if reason in _BAD_IMAGE or (reason in _PULL_FAILED and _is_hopeless(message)):
        why = fact("image_unavailable", image=_image_of(pod), words=message or reason)
        return PodStatus(ServerPhase.FAILED, why, Cause.IMAGE)
    if reason in _PULL_FAILED:
        return _pull_failing(pod)
    if reason == "CrashLoopBackOff":
        return _crashing(pod)
    if reason in _BAD_CONFIGURATION:
        why = fact("container_not_made", words=message or reason)
        since = read_time(pod["status"].get("startTime"))
        hopeful = PodStatus(ServerPhase.STARTING, why)
        return _unless_within(since, _CONFIGURATION_FAILS_FOR, hopeful, PodStatus(ServerPhase.FAILED, why))
    return PodStatus(ServerPhase.STARTING)


def _pull_failing(pod: Json) -> PodStatus:
    """The registry does not answer, say. It is tried again and again, and always told in the same words."""
    image, since = _image_of(pod), read_time(pod["status"].get("startTime"))
    pulling = PodStatus(ServerPhase.STARTING, fact("image_pull_retried", image=image))
    given_up = fact("image_pull_given_up", image=image, limit=_PULL_FAILS_FOR)
    failed = PodStatus(ServerPhase.FAILED, given_up, Cause.IMAGE)
    return _unless_within(since, _PULL_FAILS_FOR, pulling, failed)


def _crashing(pod: Json) -> PodStatus:
    last = _container_of(pod).get("lastState", {}).get("terminated", {})
    cause = Cause.OUT_OF_MEMORY if last.get("reason") == _OUT_OF_MEMORY else None
    return PodStatus(ServerPhase.CRASHING, fact("container_ended", how=_how_it_ended(last)), cause)


def find_last_end(pod: Json) -> Fact | None:
    """For a container that runs again: when and how it ended before."""
    last = _container_of(pod).get("lastState", {}).get("terminated")
    if not last:
        return None
    how, at = _how_it_ended(last), read_time(last.get("finishedAt"))
    return fact("container_restarted_at", how=how, at=at) if at else fact("container_restarted", how=how)


def find_oom(pod: Json) -> tuple[int, datetime | None]:
    """Which end of the container was for want of memory, and when; the cluster remembers one."""
    container = _container_of(pod)
    restarts = int(container.get("restartCount", 0))
    for ends, state in ((restarts + 1, "state"), (restarts, "lastState")):
        ended = container.get(state, {}).get("terminated") or {}
        if ended.get("reason") == _OUT_OF_MEMORY:
            return ends, read_time(ended.get("finishedAt"))
    return 0, None


def _how_it_ended(last: Json) -> Fact:
    if last.get("reason") == _OUT_OF_MEMORY:
        return fact("ended_out_of_memory")
    code, words = last.get("exitCode", "unknown"), _shorten(last.get("message", ""))
    return fact("ended_with_code", code=code, words=words)


def _is_hopeless(message: str) -> bool:
    lowered = message.lower()
    return any(words in lowered for words in _HOPELESS_PULL)


def _unless_within(since: datetime | None, limit: timedelta, now: PodStatus, then: PodStatus) -> PodStatus:
    if since is None:
        return now
    return PodStatus(now.phase, now.detail, now.cause, until=since + limit, then=then)


def _image_of(pod: Json) -> str:
    return str(pod["spec"]["containers"][0]["image"])


def _container_of(pod: Json) -> Json:
    statuses: list[Json] = pod.get("status", {}).get("containerStatuses") or []
    return statuses[0] if statuses else {}


def find_condition(item: Json, kind: str) -> Json:
    conditions: list[Json] = item.get("status", {}).get("conditions") or []
    return next((condition for condition in conditions if condition["type"] == kind), {})


def read_time(value: Any) -> datetime | None:
    return datetime.fromisoformat(value) if value else None


def _shorten(words: str) -> str:
    """One line of it, without the full stop: the sentence around it has its own."""
    line = make_printable(" ".join(str(words).split()), _LONGEST_WORDS + 1)
    shown = line if len(line) <= _LONGEST_WORDS else f"{line[:_LONGEST_WORDS]} …"
    return shown.rstrip(".")
