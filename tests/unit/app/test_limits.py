"""The limits of one process: by key, bounded in memory, and honest on when to come back."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from gpudev.app import limits
from gpudev.app.limits import Limiter, origin_of
from gpudev.domain.errors import TooManyRequests
from gpudev.domain.limits import Rate
from tests.support.reservations import NOON


class MovableClock:
    def __init__(self) -> None:
        self.at = NOON

    def now(self) -> datetime:
        return self.at


def test_who_asks_too_often_is_told_when_to_come_back_and_let_in_then() -> None:
    clock = MovableClock()
    limiter = Limiter(Rate(0.5, 1), clock, "submits_too_often")
    limiter.take("ada")
    with pytest.raises(TooManyRequests, match="You submit too often") as caught:
        limiter.take("ada")
    assert caught.value.retry_after == timedelta(seconds=2)
    limiter.take("eve")
    clock.at += caught.value.retry_after
    limiter.take("ada")


def test_a_rate_of_zero_is_no_limit() -> None:
    limiter = Limiter(Rate(0, 1), MovableClock(), "")
    for _ in range(100):
        limiter.take("ada")


def test_memory_is_bounded_and_the_busy_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_BUCKETS", 3)
    limiter = Limiter(Rate(0.001, 2), MovableClock(), "")
    limiter.take("busy")
    for stranger in range(10):
        limiter.take(stranger)
        if stranger == 1:
            limiter.take("busy")
            with pytest.raises(TooManyRequests):
                limiter.take("busy")
    assert len(limiter._buckets) == 3


@pytest.mark.parametrize(
    "address, origin",
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:1", "2001:db8::/64"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("unknown", "unknown"),
    ],
)
def test_failures_are_counted_for_what_one_customer_has(address: str, origin: str) -> None:
    assert origin_of(address) == origin
