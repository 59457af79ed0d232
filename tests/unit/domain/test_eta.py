"""Likely starts: the planned wait, as much shorter as others' was, and nothing where nothing was learned."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gpudev.domain.eta import NO_HABITS, Habits, LikelyStart, WaitRatios, bucket_of
from tests.support.domain_values import HOUR, MINUTE, NOW

HABITS = Habits({(2, bucket_of(HOUR)): WaitRatios(0.25, 0.5, 0.75)})


def test_the_window_is_the_planned_wait_by_the_learned_ratios() -> None:
    likely = HABITS.find_likely_start(NOW, NOW + HOUR, 2)
    assert likely == LikelyStart(NOW + 15 * MINUTE, NOW + 30 * MINUTE, NOW + 45 * MINUTE)


@pytest.mark.parametrize(
    "planned,slots",
    [(HOUR, 4), (10 * HOUR, 2), (timedelta(), 2)],
    ids=["size", "wait", "none"],
)
def test_nothing_is_said_of_what_nothing_was_learned_of(planned: timedelta, slots: int) -> None:
    assert HABITS.find_likely_start(NOW, NOW + planned, slots) is None
    assert NO_HABITS.find_likely_start(NOW, NOW + planned, slots) is None


@pytest.mark.parametrize(
    "planned,bucket",
    [(MINUTE, 0), (30 * MINUTE, 1), (HOUR, 1), (2 * HOUR, 2), (8 * HOUR, 3), (24 * HOUR, 4), (90 * HOUR, 4)],
)
def test_planned_waits_are_alike_within_a_bucket(planned: timedelta, bucket: int) -> None:
    assert bucket_of(planned) == bucket
