"""How long a request may wait, and that downtime counts against nobody."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gpudev.domain.plans.start import drive, find_end_of_wait, is_drive_due, is_stale
from gpudev.domain.reservation import Reservation
from gpudev.texts.vocabulary import Reason, Status
from tests.support.domain_values import HOUR, MINUTE, NOW, POLICY, make_reservation

FORGOTTEN = make_reservation(status=Status.QUEUED, last_queue_update=NOW - POLICY.stale_after)


@pytest.mark.parametrize(
    "news, stale",
    [
        ({"last_queue_update": NOW - 4 * MINUTE}, False),
        ({"last_queue_update": NOW - 5 * MINUTE}, True),
        ({"last_queue_update": NOW - HOUR, "last_updated": NOW - MINUTE}, False),
        ({"created_at": NOW - MINUTE}, False),
        ({"created_at": NOW - 6 * MINUTE}, True),
    ],
    ids=str,
)
def test_request_is_stale_when_nothing_was_heard_of_it(news: dict[str, object], *, stale: bool) -> None:
    assert is_stale(make_reservation(**news), NOW, POLICY) is stale


def drive_for(reservation: Reservation, minutes: int) -> Reservation:
    """Driven every minute from `NOW` on, as a working controller does."""
    for minute in range(minutes + 1):
        assert is_drive_due(reservation, NOW + minute * MINUTE, POLICY)
        reservation = drive(reservation, NOW + minute * MINUTE, POLICY)
    return reservation


def test_request_that_is_driven_in_vain_is_given_up_after_five_minutes() -> None:
    almost = drive_for(FORGOTTEN, 4)
    assert find_end_of_wait(almost, NOW + 5 * MINUTE - timedelta(seconds=1), POLICY) is None
    assert find_end_of_wait(almost, NOW + 5 * MINUTE, POLICY) is Reason.QUEUE_STALLED


def test_request_that_was_renewed_meanwhile_waits_on() -> None:
    driven = drive_for(FORGOTTEN, 4)
    renewed = make_reservation(
        status=Status.QUEUED,
        last_queue_update=NOW + 4 * MINUTE,
        stale_since=driven.memory.stale_since,
        driven_at=driven.memory.driven_at,
    )
    assert find_end_of_wait(renewed, NOW + 6 * MINUTE, POLICY) is None


def test_downtime_counts_against_nobody() -> None:
    """Driven once, then nobody was there for an hour: the five minutes begin anew."""
    driven = drive(FORGOTTEN, NOW, POLICY)
    back = NOW + HOUR
    assert find_end_of_wait(driven, back, POLICY) is None
    assert drive(driven, back, POLICY).memory.stale_since == back


def test_request_that_was_stale_before_and_is_again_has_all_its_time() -> None:
    earlier = make_reservation(
        status=Status.QUEUED,
        last_queue_update=NOW - 5 * MINUTE,
        stale_since=NOW - 9 * MINUTE,
        driven_at=NOW - 6 * MINUTE,
    )
    assert find_end_of_wait(earlier, NOW, POLICY) is None
    assert drive(earlier, NOW, POLICY).memory.stale_since == NOW


def test_nobody_waits_longer_than_the_limit_however_fresh_the_place() -> None:
    asked = make_reservation(status=Status.QUEUED, created_at=NOW - 48 * HOUR, last_queue_update=NOW)
    assert find_end_of_wait(asked, NOW, POLICY) is Reason.QUEUED_TOO_LONG
    assert find_end_of_wait(asked, NOW - timedelta(seconds=1), POLICY) is None


@pytest.mark.parametrize("field", ["start_at", "estimated_start_at"])
def test_one_that_has_a_time_is_waited_for_from_then_on(field: str) -> None:
    limit = POLICY.queue_limit
    asked = make_reservation(
        status=Status.QUEUED, created_at=NOW - 2 * limit, last_queue_update=NOW, **{field: NOW - limit + HOUR}
    )
    assert find_end_of_wait(asked, NOW, POLICY) is None
    assert find_end_of_wait(asked, NOW + HOUR, POLICY) is Reason.QUEUED_TOO_LONG
