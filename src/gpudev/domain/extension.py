"""How much longer a reservation may become.

An extension is counted from the present end, also in the grace after it. All of them together may bring a
reservation to the longest length there is, counted from its activation.
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime, timedelta

from gpudev.domain.errors import Conflict, Invalid
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.reservation import Reservation
from gpudev.texts.vocabulary import Status

_MINUTE = timedelta(minutes=1)


def extension_of(hours: float) -> timedelta:
    """Hours as a length; what no clock can count is as much too long as any other."""
    try:
        length = timedelta(hours=hours)
    except (OverflowError, ValueError):
        length = timedelta.max if hours > 0 else timedelta()
    if length <= timedelta():
        raise Invalid(
            f"{hours:g} hours is not an extension.",
            hint="Say by how many hours, for example 2 or 0.5.",
            code="bad_extension",
        )
    return length


def find_allowance(
    reservation: Reservation, policy: TimePolicy, stays_until: datetime | None = None
) -> timedelta | None:
    """The longest extension that is left; None for what is not active.

    `stays_until` is when its GPUs are promised to somebody else, if they are: the one computation behind what
    is granted, what is refused and what is said to be left.
    """
    end = reservation.expires_at
    longest = _find_longest(reservation, policy)
    if longest is None or end is None:
        return None
    return longest if stays_until is None else min(longest, max(timedelta(), stays_until - end))


def extend(
    reservation: Reservation, length: timedelta, policy: TimePolicy, stays_until: datetime | None = None
) -> Reservation:
    """With a later end, of which nobody has been warned yet. Refused if it is not active or too long."""
    left = find_allowance(reservation, policy, stays_until)
    if left is None or reservation.expires_at is None:
        raise Conflict(
            f"Reservation {reservation.id8} is {reservation.status}; only an active one can be extended.",
            hint="Yours are listed by: gpu-dev list",
            code="not_active",
        )
    if length > left and stays_until is not None and left != _find_longest(reservation, policy):
        raise _promised(reservation, left, stays_until)
    if length > left:
        raise _too_long(reservation, left, policy)
    return replace(
        reservation, expires_at=reservation.expires_at + length, warned_minutes=None, extension_error=""
    )


def in_words(length: timedelta) -> str:
    """`26 hours`, `1 hour 30 minutes`, `45 minutes`; less than a minute does not count."""
    hours, minutes = divmod(length // _MINUTE, 60)
    parts = [(hours, "hour"), (minutes, "minute")]
    words = [f"{count} {unit}{'' if count == 1 else 's'}" for count, unit in parts if count]
    return " ".join(words) or "less than a minute"


def _find_longest(reservation: Reservation, policy: TimePolicy) -> timedelta | None:
    """By the longest length of a reservation alone."""
    start, end = reservation.launched_at, reservation.expires_at
    if reservation.status is not Status.ACTIVE or start is None or end is None:
        return None
    return max(timedelta(), start + policy.longest - end)


def tell_how_to_extend(reservation: Reservation, hours: str = "HOURS") -> str:
    """A command that clients of version 0.3 know as well as ours."""
    return f"gpu-dev edit {reservation.id8} --extend {hours}"


def _as_typed(length: timedelta) -> str:
    """`26`, `1.5`, `0.75`: hours as every client takes them, never more than there are."""
    return f"{math.floor(length / timedelta(hours=1) * 100) / 100:g}"


def _promised(reservation: Reservation, left: timedelta, stays_until: datetime) -> Conflict:
    return Conflict(
        f"Reservation {reservation.id8} can be extended by {in_words(left)} at most: "
        f"its GPUs are promised to somebody from {stays_until:%Y-%m-%d %H:%M} UTC on.",
        hint=f"For example: {tell_how_to_extend(reservation, _as_typed(left))}"
        if left >= _MINUTE
        else "Reserve again, and see before when that would start: gpu-dev reserve --dry-run",
        code="promised_to_others",
    )


def _too_long(reservation: Reservation, left: timedelta, policy: TimePolicy) -> Invalid:
    most = in_words(policy.longest)
    if left < _MINUTE:
        return Invalid(
            f"Reservation {reservation.id8} has its longest length of {most} already.",
            hint="Reserve again when it ends: gpu-dev reserve",
            code="extension_too_long",
        )
    return Invalid(
        f"Reservation {reservation.id8} can be extended by {in_words(left)} at most: "
        f"{most} in all, counted from its start, is the longest.",
        hint=f"For example: {tell_how_to_extend(reservation, _as_typed(left))}",
        code="extension_too_long",
    )
