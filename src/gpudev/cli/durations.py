"""Lengths of time as people type them: `2h30m`, `90m`, `1.5h`, `2` (hours); timeouts also `90s`."""

from __future__ import annotations

import re

import click

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
