"""The stages of a reservation, by its events: which one runs, and how long those before it took.

How long each stage of a start took here before is kept in one small file by the address of the server: the
newest durations of each. What is usual is their median. It is a comfort and nothing depends on it: the file
may be deleted at any time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gpudev.client.files import read_json_object, write_private
from gpudev.texts.vocabulary import EventKind
from gpudev.wire.jobs import JobEvent

LOOKING, QUEUE, START, ACTIVE, STOPPED, CLEANUP = "look", "queue", "start", "active", "stopped", "cleanup"
PROGRESS = "progress"

BEGINS: Mapping[str, str] = MappingProxyType(
    {
        EventKind.SUBMITTED: LOOKING,
        EventKind.QUEUED: QUEUE,
        EventKind.REQUEUED: QUEUE,
        EventKind.STOPPED: CLEANUP,
        EventKind.RELEASED: STOPPED,
        EventKind.RESUMED: LOOKING,
        EventKind.PLACED: START,
        EventKind.ACTIVE: ACTIVE,
        EventKind.EXPIRED: CLEANUP,
        EventKind.CANCELLED: CLEANUP,
        EventKind.FAILED: CLEANUP,
        EventKind.CLEANED: "",
    }
)
"""Which stage begins with an event of this kind; none with the last one."""
_TITLES = {
    LOOKING: "Being looked at",
    QUEUE: "In the queue",
    START: "Starting the dev server",
}
"""Of those that one waits for."""


@dataclass(frozen=True, slots=True)
class Stages:
    gpu_type: str
    current: str = LOOKING
    title: str = _TITLES[LOOKING]
    since: datetime | None = None
    """On the server's clock."""
    passed: dict[str, float] = field(default_factory=dict)
    """Seconds by stage; the wait in the queue is not among them: it says nothing about the next one."""


def advance(stages: Stages, event: JobEvent) -> Stages:
    """After this event. A stage that comes twice counts as often as it came last."""
    begun = _find_stage(event, stages)
    if begun is None:
        return stages
    passed = dict(stages.passed)
    if stages.since is not None and stages.current not in {LOOKING, QUEUE}:
        passed[stages.current] = (event.at - stages.since).total_seconds()
    key, title = begun
    return replace(stages, current=key, title=title, since=event.at, passed=passed)


def _find_stage(event: JobEvent, stages: Stages) -> tuple[str, str] | None:
    """What begins with this event, and what to call it meanwhile."""
    if event.kind == EventKind.ACTIVE:
        return "", "Ready"
    if event.kind == EventKind.PROGRESS:
        return f"{stages.gpu_type}/{_name_of(event)}", event.message.rstrip(".")
    stage = BEGINS.get(event.kind)
    if stage not in _TITLES:
        return None
    return (f"{stages.gpu_type}/{stage}" if stage == START else stage), _TITLES[stage]


def _name_of(event: JobEvent) -> str:
    """What goes on, the same for every image and node. Older servers tell only words."""
    key, data = event.key or PROGRESS, event.data or {}
    while isinstance(inner := data.get("what"), dict):  # told of one member of a gang
        key, data = str(inner.get("key", key)), inner.get("data") or {}
    return key


KEPT = 20
"""So many durations of each stage: enough for a median, few enough to follow a change."""


@dataclass(frozen=True, slots=True)
class StageTimes:
    path: Path
    api_url: str

    def find_usual(self, stage: str) -> float | None:
        """In seconds; None if the stage was never seen."""
        from statistics import median

        seen = _read_seconds(self._read().get(stage))
        return median(seen) if seen else None

    def remember(self, durations: dict[str, float]) -> None:
        if not durations:
            return
        stages = self._read()
        for stage, seconds in durations.items():
            stages[stage] = [*_read_seconds(stages.get(stage)), round(seconds, 2)][-KEPT:]
        content = {**read_json_object(self.path), self.api_url: stages}
        write_private(self.path, json.dumps(content) + "\n")

    def _read(self) -> dict[str, Any]:
        stages = read_json_object(self.path).get(self.api_url)
        return stages if isinstance(stages, dict) else {}


def _read_seconds(kept: object) -> list[float]:
    return [float(each) for each in kept if isinstance(each, (int, float))] if isinstance(kept, list) else []
