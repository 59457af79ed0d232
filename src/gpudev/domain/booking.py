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
        raise Invalid(
            f"start_at is {start_at.isoformat()}, and nobody knows where on earth.",
            hint="Send it with its offset from UTC, for example 2030-01-01T14:00:00Z.",
            code="bad_start",
        )
    if start_at < now:
        raise Invalid(
            f"A booking for {start_at:%Y-%m-%d %H:%M %Z} is in the past.",
            hint="Choose a later time, or leave out --at to start as soon as there is room.",
            code="booking_in_the_past",
        )
    if start_at > now + FURTHEST:
        raise Invalid(
            f"A booking for {start_at:%Y-%m-%d %H:%M %Z} is more than {FURTHEST.days} days ahead.",
            hint=f"Choose a time within the next {FURTHEST.days} days.",
            code="booking_too_far",
        )
    return grid.time_of(grid.step_after(start_at))


def check_booking(foreseen: Foreseen, start_at: datetime) -> None:
    """Refuse what cannot start when it was asked for; the nearest time is told."""
    if foreseen.start == start_at or (foreseen.starts_now and foreseen.start and foreseen.start >= start_at):
        return
    wish = foreseen.wish
    what = f"{wish.gpu_count} {wish.gpu_type} GPU{'' if wish.gpu_count == 1 else 's'}"
    if foreseen.start is None:
        raise Conflict(
            f"There is no time at which {what} could start.",
            hint="Choose another type from: gpu-dev avail",
            code="no_room_then",
        )
    raise Conflict(
        f"{what} cannot start at {start_at:%Y-%m-%d %H:%M} UTC without making others late.",
        hint=f"The nearest time after that is: --at {foreseen.start:%Y-%m-%dT%H:%MZ}",
        code="no_room_then",
    )
