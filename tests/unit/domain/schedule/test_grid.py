"""Moments as steps: a length is covered, an end is not cut off, and a step is a round time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gpudev.domain.schedule.grid import Grid
from tests.support.domain_values import HOUR, MINUTE, NOW

GRID = Grid()


@pytest.mark.parametrize(
    "minutes,within,after",
    [(0, 0, 0), (1, 0, 1), (4.99, 0, 1), (5, 1, 1), (-1, -1, 0)],
)
def test_a_moment_is_in_one_step_and_before_another(minutes: float, within: int, after: int) -> None:
    moment, noon = NOW + minutes * MINUTE, GRID.step_of(NOW)
    assert (GRID.step_of(moment) - noon, GRID.step_after(moment) - noon) == (within, after)


@pytest.mark.parametrize(
    "length,steps", [(HOUR, 12), (HOUR + timedelta(seconds=1), 13), (MINUTE, 1), (timedelta(), 0)]
)
def test_a_length_is_covered(length: timedelta, steps: int) -> None:
    assert GRID.count(length) == steps


def test_a_step_is_a_time() -> None:
    assert GRID.time_of(GRID.step_of(NOW) + 1) == NOW + 5 * MINUTE
