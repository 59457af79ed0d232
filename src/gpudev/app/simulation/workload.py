"""The input of a simulation: what people asked for in some weeks, and what they did with it.

A file has one JSON object a line: `{"at": "2030-01-07T09:00:00Z", "user": "ada", "gpus": 4, "hours": 8,
"used_hours": 5.5}`, and where they matter `nodes`, `extends_hours` and `gives_up_hours`. Weeks that never
were are made by chance and a seed: requests come by day more than by night and on working days more than at
weekends; many users give back early, some want more time, and some give up waiting. Times are whole
minutes.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from gpudev.domain.errors import Invalid
from gpudev.domain.queue import Submission
from gpudev.texts.fact import Fact, fact

_HOUR = timedelta(hours=1)
_KEYS = ("at", "user", "gpus", "hours", "nodes", "used_hours", "extends_hours", "gives_up_hours")


Trace = tuple[Submission, ...]


def read_trace(path: Path) -> Trace:
    """In the order of time; `Invalid` names the file, the line and what may stand there."""
    lines = path.read_text(encoding="utf-8").splitlines()
    numbered = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    submissions = [_read_line(path, number, line) for number, line in numbered]
    return tuple(sorted(submissions, key=lambda one: one.at))


def write_trace(path: Path, trace: Iterable[Submission]) -> None:
    path.write_text("".join(f"{json.dumps(_as_json(one))}\n" for one in trace), encoding="utf-8")


def _read_line(path: Path, number: int, line: str) -> Submission:
    try:
        return _submission_from(json.loads(line))
    except Invalid as error:
        raise _bad_line(path, number, error.fact) from error
    except (ValueError, KeyError, TypeError) as error:
        raise _bad_line(path, number, fact("words", words=str(error))) from error


def _bad_line(path: Path, number: int, cause: Fact) -> Invalid:
    return Invalid(
        "bad_trace_line", path=str(path), line=number, cause=cause, optional=_KEYS[4:], code="bad_trace"
    )


def _submission_from(value: Mapping[str, Any]) -> Submission:
    if unknown := sorted(set(value) - set(_KEYS)):
        raise Invalid("trace_field_unknown", name=unknown[0])
    at = datetime.fromisoformat(value["at"])
    if at.tzinfo is None:
        raise Invalid("trace_time_without_offset")
    found = Submission(
        at=at,
        user=str(value["user"]),
        gpus=int(value["gpus"]),
        length=float(value["hours"]) * _HOUR,
        nodes=int(value.get("nodes", 1)),
        used=_hours(value.get("used_hours")),
        extends=_hours(value.get("extends_hours")) or timedelta(),
        gives_up=_hours(value.get("gives_up_hours")),
    )
    if found.gpus < 1 or found.nodes < 1 or found.length <= timedelta():
        raise Invalid("trace_of_nothing")
    return found


def _hours(value: float | None) -> timedelta | None:
    return None if value is None else float(value) * _HOUR


def _as_json(one: Submission) -> dict[str, object]:
    optional = {
        "nodes": one.nodes if one.nodes > 1 else None,
        "used_hours": one.used / _HOUR if one.used is not None else None,
        "extends_hours": one.extends / _HOUR or None,
        "gives_up_hours": one.gives_up / _HOUR if one.gives_up is not None else None,
    }
    plain = {"at": one.at.isoformat(), "user": one.user, "gpus": one.gpus, "hours": one.length / _HOUR}
    return plain | {name: value for name, value in optional.items() if value is not None}


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
