"""Token buckets: so many at once, so many a second, and an honest word on how long to wait."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudev.domain.limits import NO_WAIT, Bucket, Rate, find_wait, take
from tests.support.reservations import NOON

RATE = Rate(per_second=2, burst=3)


def test_a_new_bucket_is_full() -> None:
    bucket: Bucket | None = None
    for _ in range(RATE.burst):
        bucket, wait = take(bucket, RATE, NOON)
        assert wait == NO_WAIT
    _, wait = take(bucket, RATE, NOON)
    assert wait == timedelta(seconds=0.5)


def test_waiting_as_long_as_told_is_enough() -> None:
    empty = Bucket(0, NOON)
    _, wait = take(empty, RATE, NOON)
    assert take(empty, RATE, NOON + wait)[1] == NO_WAIT


def test_a_bucket_never_holds_more_than_its_burst() -> None:
    bucket, _ = take(Bucket(0, NOON), RATE, NOON + timedelta(hours=1))
    assert bucket.tokens == RATE.burst - 1


def test_a_clock_set_back_gives_nothing_and_takes_nothing() -> None:
    bucket, wait = take(Bucket(2, NOON), RATE, NOON - timedelta(hours=1))
    assert (bucket.tokens, wait) == (1, NO_WAIT)


@pytest.mark.parametrize("per_second, is_unlimited", [(0, True), (0.1, False)])
def test_zero_a_second_is_without_limit(per_second: float, *, is_unlimited: bool) -> None:
    assert Rate(per_second, 1).is_unlimited is is_unlimited


@given(st.lists(st.floats(0, 2), max_size=60), st.floats(0.1, 50), st.integers(1, 20))
def test_nobody_gets_more_than_burst_and_rate(pauses: list[float], per_second: float, burst: int) -> None:
    rate, now, bucket, granted = Rate(per_second, burst), NOON, None, 0
    for pause in pauses:
        now += timedelta(seconds=pause)
        bucket, wait = take(bucket, rate, now)
        granted += wait == NO_WAIT
    assert granted <= burst + (now - NOON).total_seconds() * per_second + 1e-3


@pytest.mark.parametrize(
    "days_ago, wait",
    [(None, timedelta(0)), (0, timedelta(60)), (20, timedelta(40)), (60, timedelta(0)), (70, timedelta(0))],
)
def test_one_waits_until_a_failure_has_left_the_window(days_ago: float | None, wait: timedelta) -> None:
    blocking = None if days_ago is None else NOON - timedelta(days=days_ago)
    assert find_wait(blocking, timedelta(days=60), NOON) == wait
