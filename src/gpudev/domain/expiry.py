"""What the clock does to a reservation: how long it may be, when it is warned, when it ends.

How long a request may wait is in `plans.start`, and how much longer a reservation may become in `operations`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from gpudev.domain.errors import Invalid
from gpudev.domain.reservation import Reservation
from gpudev.domain.schedule.grid import Grid
from gpudev.texts.vocabulary import Reason

_HOUR = timedelta(hours=1)
MIN_DURATION = timedelta(minutes=5)
MAX_DURATION = timedelta(hours=24)
WARNING_MINUTES = (30, 15, 5)
"""How long before its end a reservation is warned."""


@dataclass(frozen=True, slots=True)
class TimePolicy:
    """The settings of everything that happens because a clock moved."""

    grace: timedelta = timedelta(seconds=120)
    longest: timedelta = timedelta(hours=48)
    """What a reservation can become by extensions; only the time counts in which it is active."""
    start_limit: timedelta = timedelta(minutes=60)
    progress_limit: timedelta = timedelta(minutes=15)
    """How long a start may show nothing new before it is given up."""
    queue_refresh: timedelta = timedelta(minutes=2)
    queue_limit: timedelta = timedelta(hours=48)
    """How long a request may wait before it is cancelled."""
    stale_after: timedelta = timedelta(minutes=5)
    """A request whose place in the queue was not renewed for so long is driven again."""
    drive_every: timedelta = timedelta(minutes=1)
    drive_limit: timedelta = timedelta(minutes=5)
    """How long a stale request is driven in vain before it is cancelled."""
    recheck: timedelta = timedelta(seconds=30)
    """How soon a server that starts or stops is looked at again, should every hint of it be lost."""
    safety_net: timedelta = timedelta(minutes=5)
    """However quiet things are, a reservation that is not cleaned up is looked at this often."""
    start_allowance: timedelta = timedelta(seconds=60)
    """How long a start takes, in the plan: what is reserved begins to count only when the server answers."""
    stopped_limit: timedelta = timedelta(days=7)
    """How long a reservation may be stopped before it ends."""
    stopped_warning: timedelta = timedelta(days=1)
    """How long before that its owner is told."""
    grid: Grid = field(default_factory=Grid)
    """The steps in which promises are made."""


def duration_of(hours: float) -> timedelta:
    """Hours as a length of time; what no clock can count is refused like any other bad length."""
    if not MIN_DURATION / _HOUR <= hours <= MAX_DURATION / _HOUR:
        raise _bad_duration(hours)
    return timedelta(hours=hours)


def check_duration(duration: timedelta) -> timedelta:
    if MIN_DURATION <= duration <= MAX_DURATION:
        return duration
    raise _bad_duration(duration / _HOUR)


def _bad_duration(hours: float) -> Invalid:
    return Invalid("bad_duration", hours=hours, code="bad_duration")


def room_is_free_at(reservation: Reservation, now: datetime, policy: TimePolicy) -> datetime:
    """When the GPUs of a reservation that holds room are expected back.

    It may end earlier; one that still starts ends later by the time that its start takes.
    """
    if not reservation.is_placed:
        return now
    starts = max(now, (reservation.state.placed_at or now) + policy.start_allowance)
    ends = reservation.state.expires_at or starts + reservation.spec.duration
    return max(now, ends + policy.grace)


def count_steps(duration: timedelta, policy: TimePolicy) -> int:
    """How long the plan keeps room for so long a reservation: with its start, and the grace after its end."""
    return policy.grid.count(policy.start_allowance + duration + policy.grace)


def ends_at(reservation: Reservation, policy: TimePolicy) -> datetime | None:
    """The end of an active reservation, its grace included."""
    return reservation.state.expires_at + policy.grace if reservation.state.expires_at else None


def is_expired(reservation: Reservation, now: datetime, policy: TimePolicy) -> bool:
    end = ends_at(reservation, policy)
    return end is not None and now >= end


def stop_ends_at(reservation: Reservation, policy: TimePolicy) -> datetime | None:
    """When a stopped reservation ends, if nobody starts it again."""
    stopped_at = reservation.state.stopped_at
    return stopped_at + policy.stopped_limit if stopped_at else None


def find_due_warning(reservation: Reservation, now: datetime) -> int | None:
    """The warning to send now, in minutes before the end; None if the nearest one is sent.

    After a time in which nobody looked only the nearest is sent, and those before it never are.
    """
    reached = [minutes for minutes, at in _list_warnings(reservation) if now >= at]
    return min(reached) if reached else None


def find_next_warning(reservation: Reservation, now: datetime) -> datetime | None:
    """When the next warning is to be sent, later than now."""
    return min((at for _, at in _list_warnings(reservation) if at > now), default=None)


def _list_warnings(reservation: Reservation) -> list[tuple[int, datetime]]:
    """Those that are not sent yet for the present end. One not shorter than the whole length never is."""
    end, start = reservation.state.expires_at, reservation.state.launched_at
    if end is None or start is None:
        return []
    sent = reservation.memory.warned_minutes
    return [
        (minutes, end - timedelta(minutes=minutes))
        for minutes in WARNING_MINUTES
        if timedelta(minutes=minutes) < end - start and (sent is None or minutes < sent)
    ]


def find_end_of_start(reservation: Reservation, now: datetime, policy: TimePolicy) -> Reason | None:
    """Why a server that does not answer yet is not waited for any longer; None while it is."""
    if now < start_is_given_up_at(reservation, policy):
        return None
    begun = reservation.state.placed_at or reservation.waits_since
    return Reason.START_TIMED_OUT if now >= begun + policy.start_limit else Reason.START_STALLED


def start_is_given_up_at(reservation: Reservation, policy: TimePolicy) -> datetime:
    """After the longest time that a start may take, or when it has shown nothing new for too long."""
    begun = reservation.state.placed_at or reservation.waits_since
    last_news = max(begun, reservation.memory.progress_at or begun)
    return min(begun + policy.start_limit, last_news + policy.progress_limit)
