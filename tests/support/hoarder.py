"""Simulated weeks of ordinary users and one hoarder, and what the hoarder costs the others."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

from typing_extensions import override

from gpudev.app.simulation.planned import PlannedQueue
from gpudev.app.simulation.queues import Run
from gpudev.app.simulation.simulate import Scene
from gpudev.app.simulation.workload import MONDAY, Workload, generate_trace
from gpudev.domain.policy import SharingPolicy
from gpudev.domain.queue import Submission
from gpudev.domain.quota import DEFAULT_QUOTA, Quota, Quotas
from tests.support.domain_values import HOUR

HOARDER = "hoarder"
_BEGINS = MONDAY + timedelta(days=1, hours=9)
_AT_ONCE = 300


@dataclass(frozen=True, slots=True)
class Hoard:
    """What the hoarder asks for, from Tuesday morning on."""

    gpus: int
    hours: float = 24
    is_persistent: bool = True
    """A new request whenever the quota allows one; otherwise 300 at once, and that is all."""


@dataclass(frozen=True, slots=True)
class Weeks:
    load: float
    seed: int = 1
    nodes: int = 13
    """Four users a node: 52 users on 104 GPUs."""
    weeks: int = 2
    quota: Quota = DEFAULT_QUOTA

    @property
    def end(self) -> datetime:
        return MONDAY + timedelta(weeks=self.weeks)


@dataclass(frozen=True, slots=True)
class Waits:
    """Of the ordinary users, in hours."""

    mean: float
    long: float
    """19 of 20 waited less."""


class HoardedQueue(PlannedQueue):
    hoard: Hoard | None = None
    end: datetime

    @override
    def begin(self) -> None:
        super().begin()
        if self.hoard is None or not self.hoard.is_persistent or not _BEGINS <= self.now < self.end:
            return
        while self._is_within_quota(run := self._make_run(self.hoard)):
            self.runs[run.id] = run
            self.submit(run)

    def _make_run(self, hoard: Hoard) -> Run:
        return Run(
            f"{len(self.runs):08}", Submission(self.now, HOARDER, hoard.gpus, timedelta(hours=hoard.hours))
        )


@cache
def replay(weeks: Weeks, hoard: Hoard | None = None) -> tuple[Run, ...]:
    trace = list(generate_trace(Workload(weeks.nodes, weeks=weeks.weeks, seed=weeks.seed, load=weeks.load)))
    users = frozenset(one.user for one in trace) | {HOARDER}
    if hoard is not None and not hoard.is_persistent:
        trace += [Submission(_BEGINS, HOARDER, hoard.gpus, timedelta(hours=hoard.hours))] * _AT_ONCE
    scene = Scene(weeks.nodes)
    sharing = SharingPolicy(Quotas(default=weeks.quota))
    queue = HoardedQueue(scene.fleet, scene.policy, sharing, users=users)
    queue.hoard, queue.end = hoard, weeks.end
    return queue.replay(tuple(sorted(trace, key=lambda one: one.at)))


def list_ordinary(runs: tuple[Run, ...]) -> list[Run]:
    return [run for run in runs if run.asked.user != HOARDER]


def measure_waits(runs: tuple[Run, ...], days: int = 365) -> Waits:
    """Of the requests of the first days."""
    until = MONDAY + timedelta(days=days)
    waits = sorted(
        run.wait / HOUR for run in list_ordinary(runs) if run.wait is not None and run.asked.at < until
    )
    return Waits(sum(waits) / len(waits), waits[len(waits) * 19 // 20])


def compare(weeks: Weeks, hoard: Hoard, days: int = 365) -> Waits:
    """How many times as long the others wait as without the hoarder."""
    alone, hoarded = measure_waits(replay(weeks), days), measure_waits(replay(weeks, hoard), days)
    return Waits(hoarded.mean / alone.mean, hoarded.long / alone.long)
