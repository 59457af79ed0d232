"""What came of a simulation: waits, utilisation, fairness, and how good the forecasts were."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from gpudev.app.simulation.planned import LIKELY, PLANNED
from gpudev.app.simulation.queues import Run
from gpudev.domain.queue import find_quantile

_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Forecasts:
    """Of those who had to wait and were told a likely time. Errors are hours, on average."""

    told: int
    errors: Mapping[str, float]
    """By each way of telling when somebody will start."""
    bias: float
    """What they waited, divided by what they were told: above 1, they waited longer."""
    coverage: float
    """The part that started within its likely window."""
    promises_kept: float
    """The part of all who waited that started when promised, or earlier."""


@dataclass(frozen=True, slots=True)
class Findings:
    queue: str
    requests: int
    started: int
    gave_up: int
    rejected: int
    """By quotas."""
    utilisation: float
    """The part of all GPU-hours in which GPUs were lent."""
    median_wait: float
    mean_wait: float
    long_wait: float
    """Hours; nine of ten waited less."""
    fairness: float
    """Of the mean slowdown of users, by Jain: 1 if all are served alike, near 0 if one has everything."""
    forecasts: Forecasts | None = None
    waits: tuple[float, ...] = field(default=(), repr=False)
    """Hours, in order."""


def find_out(queue: str, runs: Sequence[Run], slots: int) -> Findings:
    waits = sorted(run.wait / _HOUR for run in runs if run.wait is not None)
    begun, over = min(run.asked.at for run in runs), max(run.asked.at for run in runs)
    return Findings(
        queue=queue,
        requests=len(runs),
        started=len(waits),
        gave_up=sum(run.gave_up for run in runs),
        rejected=sum(run.is_rejected for run in runs),
        utilisation=_measure_utilisation(runs, slots, begun, over),
        median_wait=find_quantile(waits, 0.5),
        mean_wait=sum(waits) / len(waits),
        long_wait=find_quantile(waits, 0.9),
        fairness=_measure_fairness(runs),
        forecasts=_judge_forecasts(runs),
        waits=tuple(waits),
    )


def _measure_utilisation(runs: Sequence[Run], slots: int, begun: datetime, over: datetime) -> float:
    """Between the first request and the last: what comes after that is only the rest of it."""
    lent = sum(
        run.slots * max(0.0, (min(run.ended, over) - run.started) / _HOUR)
        for run in runs
        if run.started is not None and run.ended is not None
    )
    everything = slots * ((over - begun) / _HOUR)
    return lent / everything if everything else 0.0


def _measure_fairness(runs: Sequence[Run]) -> float:
    slowdowns: defaultdict[str, list[float]] = defaultdict(list)
    for run in runs:
        if run.wait is not None:
            slowdowns[run.asked.user].append((run.wait + run.asked.length) / run.asked.length)
    means = [sum(some) / len(some) for some in slowdowns.values()]
    squares = sum(mean * mean for mean in means)
    return sum(means) ** 2 / (len(means) * squares) if squares else 1.0


def _judge_forecasts(runs: Sequence[Run]) -> Forecasts | None:
    waited = [(run, run.started) for run in runs if run.estimates and run.started is not None]
    told = [(run, started) for run, started in waited if LIKELY in run.estimates]
    if not told:
        return None
    names = told[0][0].estimates
    return Forecasts(
        told=len(told),
        errors={
            name: sum(abs((started - run.estimates[name]) / _HOUR) for run, started in told) / len(told)
            for name in names
        },
        bias=sum((started - run.asked.at) / _HOUR for run, started in told)
        / sum((run.estimates[LIKELY] - run.asked.at) / _HOUR for run, _ in told),
        coverage=sum(run.window is not None and run.window[0] <= at <= run.window[1] for run, at in told)
        / len(told),
        promises_kept=sum(started <= run.estimates[PLANNED] for run, started in waited) / len(waited),
    )
