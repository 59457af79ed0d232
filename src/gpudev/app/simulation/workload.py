"""Weeks that never were: requests as developers make them, by chance and by a seed.

They come by day more than by night and on working days more than at weekends; many give back early, some want
more time, and some give up waiting. Times are whole minutes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from gpudev.app.simulation.trace import Trace
from gpudev.domain.queue import Submission

MONDAY = datetime(2030, 1, 7, tzinfo=UTC)
_MINUTE, _HOUR = timedelta(minutes=1), timedelta(hours=1)
_Choice = TypeVar("_Choice")


@dataclass(frozen=True, slots=True)
class Workload:
    nodes: int
    gpus_per_node: int = 8
    weeks: int = 4
    seed: int = 1
    load: float = 1.2
    """GPU-hours that are asked for, as a part of all there are; about a quarter is given back early."""
    sizes: tuple[tuple[int, float], ...] = ((1, 40), (2, 22), (4, 18), (8, 18), (16, 2))
    """GPUs, and how many of 100 requests want so many; above a node they want whole nodes."""
    hours: tuple[tuple[float, float], ...] = ((0.5, 10), (1, 16), (2, 22), (4, 24), (8, 16), (12, 7), (24, 5))
    leaves_early: float = 0.5
    extends: float = 0.1
    gives_up: float = 0.3
    """The part that would give up; it does so only where it waits too long for its taste."""


def generate_trace(workload: Workload) -> Trace:
    chance = random.Random(workload.seed)  # noqa: S311 - a simulation, not a secret
    users = _list_users(workload)
    return tuple(_submit(workload, chance, users, at) for at in _list_arrivals(workload, chance))


def _list_users(workload: Workload) -> list[tuple[str, float]]:
    """Four a node; the first ask for much more than the last."""
    count = max(4, 4 * workload.nodes)
    return [(f"user-{number:03}", 1 / (number + 3)) for number in range(count)]


def _list_arrivals(workload: Workload, chance: random.Random) -> Iterator[datetime]:
    """By chance, at a rate that follows the hour and the day: thinned from the greatest rate."""
    wanted = workload.load * workload.nodes * workload.gpus_per_node
    a_request = _mean(_sizes_of(workload)) * _mean(workload.hours)
    an_hour = wanted / a_request
    busiest = max(_busyness(MONDAY + hour * _HOUR) for hour in range(7 * 24))
    end, now = MONDAY + timedelta(weeks=workload.weeks), MONDAY
    while (now := now + chance.expovariate(an_hour * busiest) * _HOUR) < end:
        if chance.random() * busiest < _busyness(now):
            yield now - (now - MONDAY) % _MINUTE


def _busyness(at: datetime) -> float:
    """How many come, 1 on the average of a week."""
    by_day = 1.25 if at.weekday() < 5 else 0.375  # noqa: PLR2004 - Saturday
    return by_day * (1 + 0.7 * math.cos((at.hour + at.minute / 60 - 14) / 24 * 2 * math.pi))


def _sizes_of(workload: Workload) -> tuple[tuple[int, float], ...]:
    """A fleet of one node has no gangs."""
    most = workload.gpus_per_node * (1 if workload.nodes == 1 else workload.nodes)
    return tuple((size, weight) for size, weight in workload.sizes if size <= most)


def _submit(
    workload: Workload, chance: random.Random, users: Sequence[tuple[str, float]], at: datetime
) -> Submission:
    size, length = _choose(chance, _sizes_of(workload)), _choose(chance, workload.hours) * _HOUR
    nodes = max(1, size // workload.gpus_per_node)
    leaves = chance.random() < workload.leaves_early
    extends = not leaves and chance.random() < workload.extends / (1 - workload.leaves_early)
    gives_up = chance.random() < workload.gives_up
    return Submission(
        at=at,
        user=_choose(chance, users),
        gpus=size // nodes,
        nodes=nodes,
        length=length,
        used=_round(length * chance.uniform(0.05, 1)) if leaves else None,
        extends=_round(length * chance.choice((0.25, 0.5, 1))) if extends else timedelta(),
        gives_up=_round(chance.expovariate(1 / 12) * _HOUR) + _HOUR if gives_up else None,
    )


def _choose(chance: random.Random, weighted: Sequence[tuple[_Choice, float]]) -> _Choice:
    return chance.choices([one for one, _ in weighted], [weight for _, weight in weighted])[0]


def _mean(weighted: Sequence[tuple[float, float]]) -> float:
    return sum(value * weight for value, weight in weighted) / sum(weight for _, weight in weighted)


def _round(length: timedelta) -> timedelta:
    return max(_MINUTE, length - length % _MINUTE)
