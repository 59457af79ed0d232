"""Bookings: requests for a time of one's own choice, accepted only if nobody's promise moves."""

from __future__ import annotations

from datetime import datetime, timedelta

from gpudev.domain.errors import Conflict, Invalid
from gpudev.domain.preview import Foreseen
from gpudev.domain.schedule.grid import Grid

FURTHEST = timedelta(days=30)


def check_start(start_at: datetime, now: datetime, grid: Grid) -> datetime:
    """The time on the grid at which it would start. Refused if it has passed or is too far away."""
    if start_at.tzinfo is None:
        raise Invalid("start_without_zone", start=start_at.isoformat(), code="bad_start")
    if start_at < now:
        raise Invalid("booking_in_the_past", start=start_at, code="booking_in_the_past")
    if start_at > now + FURTHEST:
        raise Invalid("booking_too_far", start=start_at, days=FURTHEST.days, code="booking_too_far")
    return grid.time_of(grid.step_after(start_at))


def check_booking(foreseen: Foreseen, start_at: datetime) -> None:
    """Refuse what cannot start when it was asked for; the nearest time is told."""
    if foreseen.start == start_at or (foreseen.starts_now and foreseen.start and foreseen.start >= start_at):
        return
    wish = foreseen.wish
    if foreseen.start is None:
        raise Conflict(
            "booking_never_possible", gpu_count=wish.gpu_count, gpu_type=wish.gpu_type, code="no_room_then"
        )
    raise Conflict(
        "booking_has_no_room",
        gpu_count=wish.gpu_count,
        gpu_type=wish.gpu_type,
        start=start_at,
        nearest=foreseen.start,
        code="no_room_then",
    )
