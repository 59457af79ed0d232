"""Templates of sentences, and how times, durations and counts are written in them.

A template is a `str.format` text, or for the few sentences that need a decision a function of `Values`:

    {name}               as it is; a list with commas, a fact as its sentence
    {end:time}           2030-01-07 14:00 UTC, in the zone of the reader
    {end:second}         2030-01-07 14:00:05 UTC
    {end:clock}          14:00 UTC
    {start:instant}      2030-01-07T14:00Z, as commands take it, in any zone of the reader
    {end:date}           2030-01-07
    {length:duration}    1 hour 30 minutes
    {length:hours}       1.5, rounded down
    {nodes:count node}   1 node, 2 nodes
    {counts:or}          1, 2 or 4
    {gpus:plural}        an s unless there is one
    {id:short}           the first 8 characters of an id
    {cause:hint}         the hint of a fact
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from string import Formatter
from typing import Any

from gpudev.texts.fact import Fact, Json, parse_fact

_SHORT = 8
_TIMES = {
    "time": "%Y-%m-%d %H:%M %Z",
    "second": "%Y-%m-%d %H:%M:%S %Z",
    "clock": "%H:%M %Z",
    "date": "%Y-%m-%d",
}


class Values:
    """The data of one fact, and how to write it for one reader."""

    def __init__(self, data: Mapping[str, Json], zone: tzinfo, write: Callable[[Fact, bool], str]) -> None:
        self._data = data
        self._zone = zone
        self._write = write
        """The sentence of a fact, or its hint."""

    def __getitem__(self, name: str) -> Any:
        return self._data[name]

    def get(self, name: str) -> Any:
        return self._data.get(name)

    def fill(self, template: str) -> str:
        return "".join(self._fill_parts(template))

    def _fill_parts(self, template: str) -> Iterator[str]:
        for literal, name, spec in _parse(template):
            yield literal
            if name is not None:
                yield self.show(self._data[name], spec)

    def show(self, value: Any, spec: str = "") -> str:
        """A value as the template writes it."""
        if (pattern := _TIMES.get(spec)) is not None:
            return _local(datetime.fromisoformat(value), self._zone).strftime(pattern)
        if (write := _FORMS.get(spec)) is not None:
            return write(value)
        if spec.startswith("count "):
            return format_count(value, spec.removeprefix("count "))
        return self._show_plain(value, spec)

    def _show_plain(self, value: Any, spec: str) -> str:
        if isinstance(value, list):
            return ", ".join(self._show_plain(item, spec) for item in value)
        if isinstance(value, dict):
            return self._write(parse_fact(value), spec == "hint")
        return format(value, spec)


@lru_cache(maxsize=1000)
def _parse(template: str) -> tuple[tuple[str, str | None, str], ...]:
    """The parts of a template, each a literal with the name and the form of what follows it, if anything."""
    return tuple((literal, name, spec or "") for literal, name, spec, _ in Formatter().parse(template))


Template = str | Callable[[Values], str]


@dataclass(frozen=True, slots=True)
class Text:
    """What is the case, and what the reader can do about it."""

    sentence: Template
    hint: Template = ""


def fill(template: Template, values: Values) -> str:
    return values.fill(template) if isinstance(template, str) else template(values)


def _local(at: datetime, zone: tzinfo) -> datetime:
    """In UTC where the zone has no such time: at the ends of the calendar."""
    try:
        return at.astimezone(zone)
    except OverflowError:
        return at


def format_count(count: int, noun: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def format_duration(length: timedelta) -> str:
    """`26 hours`, `1 hour 30 minutes`, `45 minutes`; less than a minute does not count."""
    hours, minutes = divmod(length // timedelta(minutes=1), 60)
    parts = [format_count(count, unit) for count, unit in ((hours, "hour"), (minutes, "minute")) if count]
    return " ".join(parts) or "less than a minute"


def format_choices(choices: Iterable[object]) -> str:
    """`1, 2 or 4`."""
    *most, last = [str(choice) for choice in choices] or ["nothing"]
    return f"{', '.join(most)} or {last}" if most else last


def _format_hours(seconds: float) -> str:
    """`26`, `1.5`, `0.75`: hours as commands take them, never more than there are."""
    return f"{math.floor(seconds / 36) / 100:g}"


def _format_instant(value: str) -> str:
    return f"{datetime.fromisoformat(value).astimezone(UTC):%Y-%m-%dT%H:%MZ}"


_FORMS: Mapping[str, Callable[[Any], str]] = {
    "duration": lambda seconds: format_duration(timedelta(seconds=seconds)),
    "hours": _format_hours,
    "instant": _format_instant,
    "or": format_choices,
    "plural": lambda count: "" if count == 1 else "s",
    "short": lambda value: str(value)[:_SHORT],
}
