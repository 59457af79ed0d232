"""Likely starts: the planned wait, as much shorter as others' was, and nothing where nothing was learned."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gpudev.domain.queue import (
    ANY_LENGTH,
    MIN_SAMPLES,
    NO_HABITS,
    Habits,
    LikelyStart,
    Wait,
    WaitRatios,
    bucket_of,
    learn_habits,
    length_class_of,
)
from tests.support.domain_values import HOUR, MINUTE, NOW

HABITS = Habits({(2, bucket_of(HOUR), ANY_LENGTH): WaitRatios(0.25, 0.5, 0.75)})


def test_the_window_is_the_planned_wait_by_the_learned_ratios() -> None:
    likely = HABITS.find_likely_start(NOW, NOW + HOUR, 2, HOUR)
    assert likely == LikelyStart(NOW + 15 * MINUTE, NOW + 30 * MINUTE, NOW + 45 * MINUTE)


@pytest.mark.parametrize(
    "planned,slots",
    [(HOUR, 4), (10 * HOUR, 2), (timedelta(), 2)],
    ids=["size", "wait", "none"],
)
def test_nothing_is_said_of_what_nothing_was_learned_of(planned: timedelta, slots: int) -> None:
    assert HABITS.find_likely_start(NOW, NOW + planned, slots, HOUR) is None
    assert NO_HABITS.find_likely_start(NOW, NOW + planned, slots, HOUR) is None


@pytest.mark.parametrize(
    "planned,bucket",
    [(MINUTE, 0), (30 * MINUTE, 1), (HOUR, 1), (2 * HOUR, 2), (8 * HOUR, 3), (24 * HOUR, 4), (90 * HOUR, 4)],
)
def test_planned_waits_are_alike_within_a_bucket(planned: timedelta, bucket: int) -> None:
    assert bucket_of(planned) == bucket


@pytest.mark.parametrize(
    "length, expected",
    [(MINUTE, 0), (HOUR, 0), (HOUR + MINUTE, 1), (4 * HOUR, 1), (4 * HOUR + MINUTE, 2), (24 * HOUR, 2)],
)
def test_requests_not_longer_than_a_bound_are_alike(length: timedelta, expected: int) -> None:
    assert length_class_of(length) == expected


def test_what_is_learned_of_a_length_comes_before_what_is_learned_of_all() -> None:
    short = [Wait(1, HOUR, HOUR, HOUR / 4)] * MIN_SAMPLES
    long = [Wait(1, 8 * HOUR, HOUR, HOUR)] * (MIN_SAMPLES - 1)
    habits = learn_habits([*short, *long])
    of_short = habits.find_likely_start(NOW, NOW + HOUR, 1, HOUR)
    assert of_short == LikelyStart(*[NOW + HOUR / 4] * 3)
    of_long = habits.find_likely_start(NOW, NOW + HOUR, 1, 8 * HOUR)
    assert of_long is not None
    assert of_long.earliest == NOW + HOUR / 4, "too few of its own, so that all count"
    assert of_long.latest == NOW + HOUR


def test_quantiles_leave_out_as_many_on_both_sides_as_they_say() -> None:
    """Of 39 waits, the next one is shorter than the fourth shortest once in ten times."""
    count = 2 * MIN_SAMPLES - 1
    habits = learn_habits(Wait(1, HOUR, HOUR, HOUR * number / 100) for number in range(1, count + 1))
    ratios = habits.ratios[1, bucket_of(HOUR), ANY_LENGTH]
    assert ratios == WaitRatios(*map(pytest.approx, (0.04, 0.2, 0.36)))
