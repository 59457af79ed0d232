"""Use that counts less the longer ago it was."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gpudev.domain.policy import weigh_use
from tests.support.domain_values import HOUR, NOW

LONG = timedelta(days=10_000)


def test_what_is_used_now_counts_in_full() -> None:
    assert weigh_use(4, NOW - HOUR, NOW, NOW, LONG) == pytest.approx(4, rel=1e-3)


def test_what_was_used_a_half_life_ago_counts_half() -> None:
    day = timedelta(days=1)
    now = weigh_use(2, NOW - HOUR, NOW, NOW, day)
    before = weigh_use(2, NOW - HOUR - day, NOW - day, NOW, day)
    assert before == pytest.approx(now / 2)


def test_parts_of_a_time_count_as_much_as_the_whole() -> None:
    parts = [weigh_use(1, NOW - (n + 1) * HOUR, NOW - n * HOUR, NOW, 5 * HOUR) for n in range(8)]
    assert sum(parts) == pytest.approx(weigh_use(1, NOW - 8 * HOUR, NOW, NOW, 5 * HOUR))


def test_nothing_was_used_in_no_time() -> None:
    assert weigh_use(8, NOW, NOW, NOW, HOUR) == 0
