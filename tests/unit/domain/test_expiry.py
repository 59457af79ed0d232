"""What the clock does: lengths that are lent, the grace after the end, when room comes back."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from gpudev.domain.errors import Invalid
from gpudev.domain.expiry import (
    check_duration,
    count_steps,
    ends_at,
    find_due_warning,
    find_end_of_start,
    find_next_warning,
    is_expired,
    room_is_free_at,
    start_is_given_up_at,
)
from gpudev.texts.vocabulary import TERMINAL, Reason, Status
from tests.support.domain_values import HOUR, MINUTE, NOW, POLICY, make_reservation
from tests.support.parts import change

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


@pytest.mark.parametrize(
    "placed_ago, starts_in", [(timedelta(), MINUTE), (MINUTE, timedelta()), (HOUR, timedelta())]
)
def test_room_of_one_that_starts_comes_back_a_length_after_its_start(
    placed_ago: timedelta, starts_in: timedelta
) -> None:
    """A minute is allowed for the start; one that takes longer cannot start before now."""
    starting = make_reservation(status=Status.PREPARING, placed_at=NOW - placed_ago)
    assert room_is_free_at(starting, NOW, POLICY) == NOW + starts_in + HOUR + POLICY.grace


def test_the_plan_keeps_room_for_the_start_and_the_grace() -> None:
    assert count_steps(HOUR, POLICY) == 13


def test_overdue_room_is_expected_now_and_never_in_the_past() -> None:
    late = NOW + 5 * HOUR
    assert room_is_free_at(ACTIVE, late, POLICY) == late


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_room_of_an_ended_reservation_is_expected_now(status: Status) -> None:
    ended = make_reservation(status=status, expires_at=NOW + 9 * HOUR)
    assert room_is_free_at(ended, NOW, POLICY) == NOW


def test_start_without_news_is_given_up_before_one_that_makes_progress() -> None:
    starting = make_reservation(status=Status.PREPARING, placed_at=NOW)
    assert start_is_given_up_at(starting, POLICY) == NOW + 15 * MINUTE
    pulling = change(starting, progress_at=NOW + 10 * MINUTE)
    assert start_is_given_up_at(pulling, POLICY) == NOW + 25 * MINUTE


def test_no_progress_helps_a_start_beyond_its_limit() -> None:
    busy = make_reservation(status=Status.PREPARING, placed_at=NOW, progress_at=NOW + 59 * MINUTE)
    assert start_is_given_up_at(busy, POLICY) == NOW + 60 * MINUTE
    assert find_end_of_start(busy, NOW + 60 * MINUTE - SECOND, POLICY) is None
    assert find_end_of_start(busy, NOW + 60 * MINUTE, POLICY) is Reason.START_TIMED_OUT


def test_progress_of_an_earlier_placement_does_not_count() -> None:
    again = make_reservation(status=Status.PREPARING, placed_at=NOW, progress_at=NOW - HOUR)
    assert find_end_of_start(again, NOW + 15 * MINUTE, POLICY) is Reason.START_STALLED


@pytest.mark.parametrize(
    "minutes_left, sent, due",
    [
        pytest.param(31, None, None, id="too early"),
        pytest.param(30, None, 30, id="the first"),
        pytest.param(29, 30, None, id="the first is sent"),
        pytest.param(15, 30, 15, id="the second"),
        pytest.param(5, 15, 5, id="the last"),
        pytest.param(1, 5, None, id="all are sent"),
        pytest.param(14, None, 15, id="after downtime only the nearest"),
        pytest.param(2, 30, 5, id="after downtime only the nearest, though one was sent before"),
        pytest.param(-1, 15, 5, id="in grace, for those who have not heard it"),
        pytest.param(40, 15, None, id="the clock was set back"),
        pytest.param(16, 15, None, id="the clock was set back a little"),
    ],
)
def test_warning_is_due_once_for_each_level(minutes_left: int, sent: int | None, due: int | None) -> None:
    reservation = change(ACTIVE, warned_minutes=sent)
    assert find_due_warning(reservation, NOW + HOUR - minutes_left * MINUTE) == due


@pytest.mark.parametrize(
    "length, levels",
    [(5, []), (6, [5]), (15, [5]), (16, [15, 5]), (30, [15, 5]), (31, [30, 15, 5]), (1440, [30, 15, 5])],
)
def test_levels_not_below_the_length_are_skipped(length: int, levels: list[int]) -> None:
    reservation = change(ACTIVE, expires_at=NOW + length * MINUTE)
    sent, now = [], NOW
    while (at := find_next_warning(reservation, now)) is not None:
        now = at
        due = find_due_warning(reservation, now)
        sent.append(due)
        reservation = change(reservation, warned_minutes=due)
    assert sent == levels


def test_what_is_not_active_is_not_warned() -> None:
    assert find_due_warning(make_reservation(status=Status.PREPARING), NOW + 100 * HOUR) is None
