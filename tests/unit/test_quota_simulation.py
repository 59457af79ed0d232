"""The default quotas on simulated weeks: ordinary users are never rejected, one hoarder does little harm."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpudev.domain.quota import DEFAULT_QUOTA, NO_LIMIT
from tests.support.hoarder import HOARDER, Hoard, Weeks, compare, list_ordinary, measure_waits, replay

pytestmark = pytest.mark.long

LOADS = (1.0, 1.2)
WITHOUT_SHARE = replace(DEFAULT_QUOTA, long_share=None)


@pytest.mark.parametrize("load", LOADS)
def test_fifty_ordinary_users_are_never_rejected(load: float) -> None:
    runs = replay(Weeks(load))
    assert len({run.asked.user for run in runs}) >= 50
    assert [run for run in runs if run.is_rejected] == []


@pytest.mark.parametrize("load", LOADS)
def test_ordinary_users_wait_hardly_longer_for_the_share_of_long_reservations(load: float) -> None:
    """It moves waiting from the many to the few who ask for most."""
    without = measure_waits(replay(Weeks(load, quota=WITHOUT_SHARE)))
    assert measure_waits(replay(Weeks(load))).mean <= 1.1 * without.mean


@pytest.mark.threat("one user fills the queue")
@pytest.mark.parametrize(
    "load, hoard, most",
    [
        (1.0, Hoard(8, is_persistent=False), 1.5),
        (1.2, Hoard(8, is_persistent=False), 1.5),
        (1.2, Hoard(8), 1.5),
        # The line is a half. Where others wait little it is not quite met, see decision 0046: 1.56 and 1.51.
        (1.0, Hoard(1), 1.6),
        (1.0, Hoard(8), 1.55),
    ],
    ids=["burst", "burst on a full fleet", "nodes on a full fleet", "single GPUs", "nodes"],
)
def test_one_hoarder_raises_the_mean_wait_of_the_others_by_at_most_half(
    load: float, hoard: Hoard, most: float
) -> None:
    weeks = Weeks(load)
    assert compare(weeks, hoard, days=7).mean <= 1.5, "within the week"
    assert compare(weeks, hoard).mean <= most
    assert not any(run.is_rejected for run in list_ordinary(replay(weeks, hoard)))


def test_every_promise_is_kept_with_a_hoarder() -> None:
    told = [run for run in replay(Weeks(1.0), Hoard(8)) if run.estimates and run.started]
    assert told
    assert [run for run in told if run.started and run.started > run.estimates["planned"]] == []


def test_without_the_share_the_same_hoarder_raises_it_by_more() -> None:
    assert compare(Weeks(1.0, quota=WITHOUT_SHARE), Hoard(8)).mean > 3


def test_without_quotas_300_requests_at_once_raise_it_by_more() -> None:
    burst = Hoard(1, is_persistent=False)
    runs = replay(Weeks(1.2, quota=NO_LIMIT), burst)
    assert measure_waits(runs).mean / measure_waits(replay(Weeks(1.2, quota=NO_LIMIT))).mean > 1.5
    assert sum(run.asked.user == HOARDER for run in runs) == 300
