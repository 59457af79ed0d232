"""When a request is likely to start: the promise is the latest time, and most start earlier.

People leave early, so the wait turns out shorter than planned. By how much is learned from those who have
started: the ratio of the wait to the planned wait, by size and by how long the planned wait was. Where too
few have started, nothing is said.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

BUCKETS = (
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=8),
    timedelta(hours=24),
)
"""Planned waits are alike between two of these."""

MIN_SAMPLES = 20
"""From fewer nothing is learned."""

LEARNED_FOR = timedelta(days=28)
"""What is older says nothing about today's habits."""


@dataclass(frozen=True, slots=True)
class WaitRatios:
    """The wait as a part of the planned wait: 10, 50 and 90 of 100 waited at most so long."""

    low: float
    middle: float
    high: float


@dataclass(frozen=True, slots=True)
class LikelyStart:
    """The window that 8 of 10 start in, and the time that half of them start by."""

    earliest: datetime
    middle: datetime
    latest: datetime


@dataclass(frozen=True, slots=True)
class Habits:
    """What was learned of one GPU type, by slots and bucket of the planned wait."""

    ratios: Mapping[tuple[int, int], WaitRatios] = field(default_factory=dict)

    def find_likely_start(self, asked_at: datetime, promised_at: datetime, slots: int) -> LikelyStart | None:
        planned = promised_at - asked_at
        ratios = self.ratios.get((slots, bucket_of(planned)))
        if ratios is None or planned <= timedelta():
            return None
        return LikelyStart(
            *(_whole_seconds(asked_at + planned * part) for part in (ratios.low, ratios.middle, ratios.high))
        )


NO_HABITS = Habits()
"""Nothing was learned yet."""


def bucket_of(planned: timedelta) -> int:
    return bisect_right(BUCKETS, planned)


def _whole_seconds(moment: datetime) -> datetime:
    """Nobody can tell more exactly, and equal words are written once."""
    return moment.replace(microsecond=0)


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How good the forecasts for one GPU type were, over those who have started. Times in minutes."""

    gpu_type: str
    started: int
    promises_kept: float
    """The part of them that started when promised, or earlier."""
    promise_error: float
    """How far the first promise was off, on average."""
    likely_error: float | None = None
    """How far the middle of the likely window was off, on average; None: no window was ever told."""
    bias: float | None = None
    """What they waited, divided by what the middle of the window said: above 1, they waited longer."""
    coverage: float | None = None
    """The part of the windows that held the start."""
