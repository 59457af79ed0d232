"""What the clock does to a reservation: how long it may be, when it ends, when a start is given up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from gpudev.domain.errors import Invalid
from gpudev.domain.reservation import Reservation

MIN_DURATION = timedelta(minutes=5)
MAX_DURATION = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class TimePolicy:
    """The settings of everything that happens because a clock moved."""

    grace: timedelta = timedelta(seconds=120)
    start_limit: timedelta = timedelta(minutes=60)
    queue_refresh: timedelta = timedelta(minutes=2)
    recheck: timedelta = timedelta(seconds=30)
    """How soon a server that starts or stops is looked at again, should every hint of it be lost."""


def duration_of(hours: float) -> timedelta:
    """Hours as a length of time; what no clock can count is refused like any other bad length."""
    try:
        return check_duration(timedelta(hours=hours))
    except (OverflowError, ValueError):
        raise _bad_duration(hours) from None


def check_duration(duration: timedelta) -> timedelta:
    if MIN_DURATION <= duration <= MAX_DURATION:
        return duration
    raise _bad_duration(duration / timedelta(hours=1))


def _bad_duration(hours: float) -> Invalid:
    return Invalid(
        f"{hours:g} hours is not a length that is lent.",
        hint="Ask for 5 minutes to 24 hours, for example --hours 4 or --hours 0.5.",
        code="bad_duration",
    )


def room_is_free_at(reservation: Reservation, now: datetime, policy: TimePolicy) -> datetime:
    """When the GPUs of a reservation that holds room are expected back.

    It may end earlier; one that still starts ends later by the time that its start takes.
    """
    if reservation.is_ended:
        return now
    ends = reservation.expires_at or (reservation.placed_at or now) + reservation.duration
    return max(now, ends + policy.grace)


def ends_at(reservation: Reservation, policy: TimePolicy) -> datetime | None:
    """The end of an active reservation, its grace included."""
    return reservation.expires_at + policy.grace if reservation.expires_at else None


def is_expired(reservation: Reservation, now: datetime, policy: TimePolicy) -> bool:
    end = ends_at(reservation, policy)
    return end is not None and now >= end


def start_is_given_up_at(reservation: Reservation, policy: TimePolicy) -> datetime:
    return (reservation.placed_at or reservation.created_at) + policy.start_limit
