"""Moments and lengths of time in words. `Now` carries the reader's clock and time zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

MINUTE = timedelta(minutes=1)


class Now(NamedTuple):
    at: datetime
    zone: tzinfo | None = None
    """None is the machine's own."""


def read_now() -> Now:
    return Now(datetime.now(UTC))


def format_span(span: timedelta) -> str:
    """A length, to the minute: `45 s`, `12 min`, `3 h`, `2 h 30 min`."""
    seconds = max(0, round(span.total_seconds()))
    if seconds < MINUTE.total_seconds():
        return f"{seconds} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    parts = [f"{hours} h" if hours else "", f"{minutes} min" if minutes else ""]
    return " ".join(part for part in parts if part)


def format_hours(hours: float) -> str:
    return format_span(timedelta(hours=hours))


def format_moment(at: datetime, now: Now) -> str:
    """`14:05` today, `Tue 14:05` within the days around, otherwise the date as well."""
    local, today = at.astimezone(now.zone), now.at.astimezone(now.zone)
    days = abs((local.date() - today.date()).days)
    if days == 0:
        return f"{local:%H:%M}"
    return f"{local:%a %H:%M}" if days < 7 else f"{local:%Y-%m-%d %H:%M}"  # noqa: PLR2004 - a week


def format_wait(at: datetime, now: Now) -> str:
    """`14:05 (in 35 min)`; a moment that has passed is about to come true."""
    ahead = at - now.at
    if ahead < MINUTE / 2:
        return f"{format_moment(at, now)} (any moment)"
    return f"{format_moment(at, now)} (in {format_span(ahead)})"
