"""Whether the whole is ready, from what is known of its parts.

A replica of the API that cannot use the database is not ready, and is taken out of service. A controller that
stands still is no reason for that: reservations can still be seen, and dev servers reached. Then the API is
`degraded`, and says why.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from gpudev.texts.fact import Fact, fact

BEAT_EVERY = timedelta(seconds=5)
SILENT_AFTER = timedelta(seconds=30)
"""A controller that has not said for so long that it works is taken to have stopped."""


class ReadyStatus(StrEnum):
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    UNHEALTHY = "unhealthy"


@dataclass(frozen=True, slots=True)
class ControllerBeat:
    """What a controller last said, and how long ago."""

    name: str
    age: timedelta
    failing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Readiness:
    status: ReadyStatus
    controller: Fact
    failing: tuple[str, ...]
    disk: str | None = None
    """None where the disk is not ours to look at."""


def judge_readiness(
    beats: Collection[ControllerBeat], failing: Collection[str], *, is_disk_full: bool | None
) -> Readiness:
    """Of a process whose database answers. `failing` are its own chores."""
    alive = [beat for beat in beats if beat.age < SILENT_AFTER]
    all_failing = tuple(sorted({*failing, *(name for beat in alive for name in beat.failing)}))
    if is_disk_full:
        status = ReadyStatus.UNHEALTHY
    elif alive and not all_failing:
        status = ReadyStatus.HEALTHY
    else:
        status = ReadyStatus.DEGRADED
    disk = None if is_disk_full is None else "full" if is_disk_full else "ok"
    return Readiness(
        status, fact("controller_runs") if alive else _describe_silence(beats), all_failing, disk
    )


def _describe_silence(beats: Collection[ControllerBeat]) -> Fact:
    if not beats:
        return fact("controller_never_seen")
    return fact("controller_silent", seconds=min(beat.age for beat in beats))
