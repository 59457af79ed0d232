"""Times as people type them, and the options that take them.

Lengths: `2h30m`, `90m`, `1.5h`, `2` (hours); timeouts also `90s`. Moments: `14:00`, `tomorrow 14:00`,
`friday 9:30`, `2030-01-01 14:00`, `in 2h30m`.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from gpudev.cli.render.times import Now

_PART = re.compile(r"(\d+(?:\.\d+)?)(d|h|min|m)")
_HOURS = {"d": 24.0, "h": 1.0, "m": 1 / 60, "min": 1 / 60}


def parse_hours(text: str) -> float:
    """Hours, as a number; ValueError if it is not a length of time."""
    compact = text.replace(" ", "").lower()
    if re.fullmatch(r"\d+(\.\d+)?", compact):
        return float(compact)
    parts = _PART.findall(compact)
    if not parts or "".join(number + unit for number, unit in parts) != compact:
        raise ValueError(text)
    return sum(float(number) * _HOURS[unit] for number, unit in parts)


def parse_seconds(text: str) -> float:
    """Seconds; a bare number is so many of them. ValueError if it is not a length of time."""
    compact = text.replace(" ", "").lower()
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)s?", compact):
        return float(match[1])
    return parse_hours(compact) * 3600


def seconds_option(context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    try:
        return parse_seconds(value)
    except ValueError:
        message = f'"{value}" is not a length of time. Write it like 90s, 10m or 2h.'
        raise click.BadParameter(message, context, parameter) from None


def hours_option(context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    try:
        return parse_hours(value)
    except ValueError:
        message = f'"{value}" is not a length of time. Write it like 2h30m, 90m or 1.5h.'
        raise click.BadParameter(message, context, parameter) from None


_CLOCK = re.compile(r"(?:(?P<day>\S+) )?(?P<hour>\d{1,2}):(?P<minute>\d{2})")
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAY = timedelta(days=1)


def parse_moment(text: str, now: Now) -> datetime:
    """A moment to come, in the zone of whoever types unless it says another; ValueError if it is none."""
    words = " ".join(text.strip().split())
    if words.lower().startswith("in "):
        return now.at + timedelta(hours=parse_hours(words[3:]))
    matched = _CLOCK.fullmatch(words.lower())
    if matched:
        clock = time(int(matched["hour"]), int(matched["minute"]))
        return _at_clock(matched["day"], clock, now)
    moment = datetime.fromisoformat(words)
    return moment if moment.tzinfo else _in_zone(moment, now)


def moment_option(context: click.Context, parameter: click.Parameter, value: str | None) -> datetime | None:
    if value is None:
        return None
    from gpudev.cli.render.times import read_now

    try:
        return parse_moment(value, read_now()).astimezone(UTC)
    except ValueError:
        message = f'"{value}" is not a time. Write it like 14:00, "tomorrow 14:00", "friday 9:30" or "in 2h".'
        raise click.BadParameter(message, context, parameter) from None


def _at_clock(day: str | None, clock: time, now: Now) -> datetime:
    today = now.at.astimezone(now.zone).date()
    if day is None:
        moment = _in_zone(datetime.combine(today, clock), now)
        return moment if moment > now.at else _in_zone(datetime.combine(today + _DAY, clock), now)
    return _in_zone(datetime.combine(_day_of(day, today), clock), now)


def _day_of(word: str, today: date) -> date:
    if word in {"today", "tomorrow"}:
        return today + _DAY * (word == "tomorrow")
    if word in _WEEKDAYS:
        return today + _DAY * ((_WEEKDAYS.index(word) - today.weekday() - 1) % 7 + 1)
    return date.fromisoformat(word)


def _in_zone(moment: datetime, now: Now) -> datetime:
    """None is the machine's own zone, and so it is for a moment without any."""
    return moment.replace(tzinfo=now.zone) if now.zone else moment.astimezone()
