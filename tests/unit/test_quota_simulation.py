"""The default quotas on simulated weeks: ordinary users never meet them, and one hoarder does little harm."""

from __future__ import annotations

from datetime import timedelta
from functools import cache

import pytest

from gpudev.app.simulation.planned import PlannedQueue
from gpudev.app.simulation.queues import Run
from gpudev.app.simulation.simulate import Scene
from gpudev.app.simulation.workload import MONDAY, Workload, generate_trace
from gpudev.domain.demand import Submission
from gpudev.domain.sharing import ALIKE, with_default_quota
from tests.support.domain_values import HOUR

pytestmark = pytest.mark.long

NODES = 13
"""Four users a node: 52 users on 104 GPUs, for two weeks."""
HOARDER = "hoarder"


@cache
def replay(load: float, hoarded_gpus: int = 0, *, has_quotas: bool = True) -> tuple[Run, ...]:
    ordinary = generate_trace(Workload(NODES, weeks=2, seed=1, load=load))
    hoarded = [
        Submission(MONDAY + timedelta(days=1, hours=9), HOARDER, hoarded_gpus, 24 * HOUR) for _ in range(300)
    ]
    trace = sorted([*ordinary, *(hoarded if hoarded_gpus else ())], key=lambda one: one.at)
    scene = Scene(NODES)
    sharing = with_default_quota(ALIKE) if has_quotas else ALIKE
    return PlannedQueue(scene.fleet, scene.policy, sharing).replay(tuple(trace))


def mean_wait(runs: tuple[Run, ...]) -> float:
    """Of the others, in hours."""
    waits = [run.wait / HOUR for run in runs if run.wait is not None and run.asked.user != HOARDER]
    return sum(waits) / len(waits)


@pytest.mark.parametrize("load", [1.0, 1.2])
def test_fifty_ordinary_users_are_never_rejected(load: float) -> None:
    runs = replay(load)
    assert len({run.asked.user for run in runs}) >= 50
    assert [run for run in runs if run.is_rejected] == []


@pytest.mark.threat("one user fills the queue")
@pytest.mark.parametrize("load, gpus", [(1.2, 1), (1.0, 8), (1.2, 8)])
def test_one_hoarder_raises_the_mean_wait_of_the_others_by_at_most_half(load: float, gpus: int) -> None:
    runs = replay(load, gpus)
    assert mean_wait(runs) / mean_wait(replay(load)) <= 1.5
    assert {run.asked.user for run in runs if run.is_rejected} == {HOARDER}


def test_without_quotas_the_same_hoarder_raises_it_by_more() -> None:
    assert mean_wait(replay(1.2, 1, has_quotas=False)) / mean_wait(replay(1.2)) > 1.5
