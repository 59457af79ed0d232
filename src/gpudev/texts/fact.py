"""A fact: a key of `texts.tables` with the data of one case, stored as JSON and compared by value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from gpudev.texts.vocabulary import Reason

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Value: TypeAlias = "Json | datetime | timedelta | Sequence[Value] | Mapping[str, Value] | Fact"


@dataclass(frozen=True, slots=True)
class Fact:
    """Only JSON values, so that a fact read from the database equals the one that was written."""

    key: str
    data: Mapping[str, Json] = field(default_factory=dict)

    def __hash__(self) -> int:  # type: ignore[explicit-override]  # `override` is in Python 3.12
        return hash(self.key)

    def as_json(self) -> dict[str, Json]:
        return {"key": self.key, "data": dict(self.data)}


def fact(key: str, /, **data: Value) -> Fact:
    """A fact of values as the code has them: times become ISO 8601 in UTC, durations seconds."""
    return Fact(key, {name: _as_json(value) for name, value in data.items()})


def reason_fact(reason: Reason) -> Fact:
    """The sentence and the hint that every reservation with this reason has."""
    return Fact(f"reason_{reason}")


def join(*facts: Fact | None) -> Fact:
    """Several facts told one after the other; those that are not there are left out."""
    told = [one for one in facts if one is not None]
    return told[0] if len(told) == 1 else fact("sentences", parts=told)


def parse_fact(found: Mapping[str, Json]) -> Fact:
    """The fact that `as_json` wrote."""
    key, data = found["key"], found.get("data")
    return Fact(str(key), data if isinstance(data, dict) else {})


def find_fact(found: Mapping[str, Json] | None) -> Fact | None:
    """The same where there may be none."""
    return None if found is None else parse_fact(found)


def _as_json(value: Value) -> Json:
    if isinstance(value, Fact):
        return value.as_json()
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return _as_plain(value)


def _as_plain(value: Json | Sequence[Value] | Mapping[str, Value]) -> Json:
    if isinstance(value, str):
        return str(value)  # the value of an enum, not its member
    if value is None or isinstance(value, (int, float)):
        return value
    if isinstance(value, Mapping):
        return {name: _as_json(item) for name, item in value.items()}
    return [_as_json(item) for item in value]
