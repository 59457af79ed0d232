"""What people asked for in some weeks, and what they did with it: the input of a simulation.

A file has one JSON object a line: `{"at": "2030-01-07T09:00:00Z", "user": "ada", "gpus": 4, "hours": 8,
"used_hours": 5.5}`, and where they matter `nodes`, `extends_hours` and `gives_up_hours`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from gpudev.domain.errors import Invalid
from gpudev.domain.queue import Submission
from gpudev.texts.fact import Fact, fact

_HOUR = timedelta(hours=1)
_KEYS = ("at", "user", "gpus", "hours", "nodes", "used_hours", "extends_hours", "gives_up_hours")


Trace = tuple[Submission, ...]


def read_trace(path: Path) -> Trace:
    """In the order of time; `Invalid` names the file, the line and what may stand there."""
    lines = path.read_text(encoding="utf-8").splitlines()
    numbered = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    submissions = [_read_line(path, number, line) for number, line in numbered]
    return tuple(sorted(submissions, key=lambda one: one.at))


def write_trace(path: Path, trace: Iterable[Submission]) -> None:
    path.write_text("".join(f"{json.dumps(_as_json(one))}\n" for one in trace), encoding="utf-8")


def _read_line(path: Path, number: int, line: str) -> Submission:
    try:
        return _submission_from(json.loads(line))
    except Invalid as error:
        raise _bad_line(path, number, error.fact) from error
    except (ValueError, KeyError, TypeError) as error:
        raise _bad_line(path, number, fact("words", words=str(error))) from error


def _bad_line(path: Path, number: int, cause: Fact) -> Invalid:
    return Invalid(
        "bad_trace_line", path=str(path), line=number, cause=cause, optional=_KEYS[4:], code="bad_trace"
    )


def _submission_from(value: Mapping[str, Any]) -> Submission:
    if unknown := sorted(set(value) - set(_KEYS)):
        raise Invalid("trace_field_unknown", name=unknown[0])
    at = datetime.fromisoformat(value["at"])
    if at.tzinfo is None:
        raise Invalid("trace_time_without_offset")
    found = Submission(
        at=at,
        user=str(value["user"]),
        gpus=int(value["gpus"]),
        length=float(value["hours"]) * _HOUR,
        nodes=int(value.get("nodes", 1)),
        used=_hours(value.get("used_hours")),
        extends=_hours(value.get("extends_hours")) or timedelta(),
        gives_up=_hours(value.get("gives_up_hours")),
    )
    if found.gpus < 1 or found.nodes < 1 or found.length <= timedelta():
        raise Invalid("trace_of_nothing")
    return found


def _hours(value: float | None) -> timedelta | None:
    return None if value is None else float(value) * _HOUR


def _as_json(one: Submission) -> dict[str, object]:
    optional = {
        "nodes": one.nodes if one.nodes > 1 else None,
        "used_hours": one.used / _HOUR if one.used is not None else None,
        "extends_hours": one.extends / _HOUR or None,
        "gives_up_hours": one.gives_up / _HOUR if one.gives_up is not None else None,
    }
    plain = {"at": one.at.isoformat(), "user": one.user, "gpus": one.gpus, "hours": one.length / _HOUR}
    return plain | {name: value for name, value in optional.items() if value is not None}
