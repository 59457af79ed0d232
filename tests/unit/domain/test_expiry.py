"""What the clock does: lengths that are lent, the grace after the end, when room comes back."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from gpudev.domain.errors import Invalid
from gpudev.domain.expiry import (
    check_duration,
    ends_at,
    is_expired,
    room_is_free_at,
    start_is_given_up_at,
)
from gpudev.domain.lifecycle import TERMINAL, Status
from tests.support.domain_values import HOUR, MINUTE, NOW, POLICY, make_reservation

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize("duration", [5 * MINUTE, 0.5 * HOUR, 2.25 * HOUR, 24 * HOUR], ids=str)
def test_length_is_lent(duration: timedelta) -> None:
    assert check_duration(duration) == duration


@pytest.mark.parametrize("duration", [-HOUR, timedelta(), 5 * MINUTE - SECOND, 24 * HOUR + SECOND], ids=str)
def test_length_out_of_range_is_refused_with_the_range(duration: timedelta) -> None:
    with pytest.raises(Invalid) as refused:
        check_duration(duration)
    assert refused.value.code == "bad_duration"
    assert "5 minutes to 24 hours" in refused.value.hint


ACTIVE = make_reservation(status=Status.ACTIVE, launched_at=NOW, expires_at=NOW + HOUR)


@pytest.mark.parametrize(
    "now, expired",
    [
        pytest.param(NOW, False, id="at the start"),
        pytest.param(NOW + HOUR, False, id="at the end: grace begins"),
        pytest.param(NOW + HOUR + POLICY.grace - SECOND, False, id="in the last second of grace"),
        pytest.param(NOW + HOUR + POLICY.grace, True, id="when grace is over"),
        pytest.param(NOW + 48 * HOUR, True, id="long after"),
    ],
)
def test_reservation_expires_when_its_grace_is_over(now: datetime, *, expired: bool) -> None:
    assert is_expired(ACTIVE, now, POLICY) is expired


def test_what_never_started_has_no_end() -> None:
    queued = make_reservation(status=Status.QUEUED)
    assert ends_at(queued, POLICY) is None
    assert not is_expired(queued, NOW + 1000 * HOUR, POLICY)


def test_room_of_an_active_reservation_comes_back_after_its_grace() -> None:
    assert room_is_free_at(ACTIVE, NOW, POLICY) == NOW + HOUR + POLICY.grace


def test_room_of_one_that_starts_comes_back_a_length_after_its_placement() -> None:
    starting = make_reservation(status=Status.PREPARING, placed_at=NOW - MINUTE)
    assert room_is_free_at(starting, NOW, POLICY) == NOW - MINUTE + HOUR + POLICY.grace


def test_overdue_room_is_expected_now_and_never_in_the_past() -> None:
    late = NOW + 5 * HOUR
    assert room_is_free_at(ACTIVE, late, POLICY) == late


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_room_of_an_ended_reservation_is_expected_now(status: Status) -> None:
    ended = make_reservation(status=status, expires_at=NOW + 9 * HOUR)
    assert room_is_free_at(ended, NOW, POLICY) == NOW


def test_start_is_given_up_a_fixed_time_after_the_placement() -> None:
    starting = make_reservation(status=Status.PREPARING, placed_at=NOW)
    assert start_is_given_up_at(starting, POLICY) == NOW + 60 * MINUTE
