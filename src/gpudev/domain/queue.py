"""The queue: who waits for what, in which order, and when a request is likely to start.

The promise is the latest time, and most start earlier, because people leave early. By how much is learned
from those who have started: the ratio of the wait to the planned wait, by size, by how long the planned wait
was, and by length: short requests find earlier gaps. Where too few of a length have started all lengths are
taken together, and where those are too few, nothing is said.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from gpudev.domain.names import NodeName, ReservationId
from gpudev.domain.reservation import Reservation
from gpudev.texts.fact import Fact
from gpudev.texts.vocabulary import Reason

BUCKETS = (
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=8),
    timedelta(hours=24),
)
"""Planned waits are alike between two of these."""

LENGTHS = (timedelta(hours=1), timedelta(hours=4))
"""Requests that are not longer than one of these are alike."""

ANY_LENGTH = -1

Kind = tuple[int, int, int]
"""Slots, bucket of the planned wait, and class of the length or any."""

QUANTILES = (0.1, 0.5, 0.9)

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
    """What was learned of one GPU type."""

    ratios: Mapping[Kind, WaitRatios] = field(default_factory=dict)

    def find_likely_start(
        self, asked_at: datetime, promised_at: datetime, slots: int, length: timedelta
    ) -> LikelyStart | None:
        planned = promised_at - asked_at
        kinds = _list_kinds(slots, planned, length)
        ratios = next((self.ratios[kind] for kind in kinds if kind in self.ratios), None)
        if ratios is None or planned <= timedelta():
            return None
        return LikelyStart(
            *(_whole_seconds(asked_at + planned * part) for part in (ratios.low, ratios.middle, ratios.high))
        )


NO_HABITS = Habits()
"""Nothing was learned yet."""


@dataclass(frozen=True, slots=True)
class Wait:
    """What somebody who has started was promised at first, and how long it took."""

    slots: int
    length: timedelta
    planned: timedelta
    waited: timedelta


def learn_habits(waits: Iterable[Wait]) -> Habits:
    """The store says the same in SQL, of the waits that it keeps."""
    ratios: defaultdict[Kind, list[float]] = defaultdict(list)
    for wait in waits:
        if wait.planned > timedelta():
            for kind in _list_kinds(wait.slots, wait.planned, wait.length):
                ratios[kind].append(max(0.0, wait.waited / wait.planned))
    enough = {key: sorted(some) for key, some in ratios.items() if len(some) >= MIN_SAMPLES}
    return Habits({key: WaitRatios(*_list_quantiles(some)) for key, some in enough.items()})


def _list_quantiles(ordered: Sequence[float]) -> Iterator[float]:
    """So placed that the next one is between them as often as they say, after few samples as after many."""
    count = len(ordered)
    return (find_quantile(ordered, (part * (count + 1) - 1) / (count - 1)) for part in QUANTILES)


def find_quantile(ordered: Sequence[float], part: float) -> float:
    """Between two values as far as the part lies between their places."""
    place = part * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def bucket_of(planned: timedelta) -> int:
    return bisect_right(BUCKETS, planned)


def length_class_of(length: timedelta) -> int:
    return bisect_left(LENGTHS, length)


def _list_kinds(slots: int, planned: timedelta, length: timedelta) -> tuple[Kind, Kind]:
    """The most exact one first."""
    bucket = bucket_of(planned)
    return (slots, bucket, length_class_of(length)), (slots, bucket, ANY_LENGTH)


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


@dataclass(frozen=True, slots=True)
class Submission:
    at: datetime
    user: str
    gpus: int
    """On each of its nodes; a slot of a CPU type counts as one."""
    length: timedelta
    nodes: int = 1
    used: timedelta | None = None
    """Given back after so long; None: when its time is up."""
    extends: timedelta = timedelta()
    """Asked for shortly before its end, where it is not given back before."""
    gives_up: timedelta | None = None
    """Cancelled if it still waits after so long; None: it is waited for."""


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """Where a waiting request stands. Not a change of the reservation: it bumps no version."""

    reservation_id: ReservationId
    position: int
    estimated_start_at: datetime | None
    reason: Reason
    detail: Fact
    planned_nodes: tuple[NodeName, ...] = ()
    """Where room is kept for it from its start on."""
    likely: LikelyStart | None = None
    """When it will probably start; None where too little is known."""

    @property
    def likely_start(self) -> tuple[datetime, datetime] | None:
        return (self.likely.earliest, self.likely.latest) if self.likely else None


def in_order(waiting: Iterable[Reservation]) -> tuple[Reservation, ...]:
    """First come, first served; the id breaks ties."""
    return tuple(sorted(waiting, key=lambda reservation: (reservation.waits_since, reservation.id)))


def has_moved(reservation: Reservation, place: QueuePlace) -> bool:
    return place_of(reservation) != place_of(place)


def place_of(told: Reservation | QueuePlace) -> tuple[object, ...]:
    """What of a place is stored and shown."""
    if isinstance(told, QueuePlace):
        planned = (told.estimated_start_at, told.planned_nodes, told.likely_start)
        return (told.position, *planned, told.reason, told.detail)
    forecast, state = told.forecast, told.state
    planned = (forecast.estimated_start_at, forecast.planned_nodes, forecast.likely_start)
    return (forecast.queue_position, *planned, state.reason, state.detail)
