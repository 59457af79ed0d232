"""How things stand while one waits for a reservation: events and the place in the queue, a line each.

A `Picture` is the same as a drawing: what is done, for how long, and what is usual.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, timedelta

from gpudev.cli.render.reservations import format_place
from gpudev.cli.render.times import Now, format_moment, format_span
from gpudev.cli.terminal.lines import Line, Look
from gpudev.wire.jobs import JobDetail, JobEvent


def format_event(event: JobEvent, now: Now, *, verbose: bool) -> str:
    """What happened; with `verbose` also its name, when it was and how long after the event before."""
    if not verbose:
        return event.message
    return f"{format_moment(event.at, now)} (+{event.elapsed_seconds:.1f} s) {event.kind}: {event.message}"


def format_waiting(told: JobDetail | JobEvent, why: str, now: Now) -> str:
    """The place in the queue and the reason. No countdown: the line changes only when the plan does."""
    place = f"position {told.queue_position}" if told.queue_position else "waiting"
    start = f"starts by {format_moment(told.estimated_start_at, now)}" if told.estimated_start_at else ""
    line = f"In the queue: {place}, {start or 'start not known yet'}."
    return f"{line} {why}" if why else line


def list_waiting(told: JobDetail | JobEvent, why: str, now: Now) -> tuple[str, ...]:
    """The same for a drawing, where the title says already that it waits."""
    remarks = (
        format_place(told, now).capitalize(),
        _format_window(told, now),
        why,
        "Ctrl-C: leave it, or cancel it.",
    )
    return tuple(remark for remark in remarks if remark)


def say_why(event: JobEvent, now: Now) -> str:
    """Why it waits, by the event that put it into the queue; the position in its words is shown apart.

    A newer server may give a reason without a text here.
    """
    from gpudev.texts.fact import Fact
    from gpudev.texts.sentences import say
    from gpudev.texts.tables import TEXTS

    why = (event.data or {}).get("why")
    if not isinstance(why, dict) or why.get("key") not in TEXTS:
        return event.message
    zone = now.at.astimezone(now.zone).tzinfo
    return say(Fact(why["key"], why.get("data") or {}), zone or UTC)


def _format_window(told: JobDetail | JobEvent, now: Now) -> str:
    if not told.likely_start:
        return ""
    first, last = told.likely_start
    return f"Likely between {format_moment(first, now)} and {format_moment(last, now)}"


_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_CELLS = 10


@dataclass(frozen=True, slots=True)
class Picture:
    title: str
    """What is being done; while it stays the same, its seconds run on."""
    remarks: tuple[str, ...] = ()
    usual_seconds: float | None = None
    plain: str = ""
    """The same as a line of a log; empty: nothing that a log needs."""


def format_picture(picture: Picture, seconds: float, frame: int) -> tuple[Line, ...]:
    spent = format_span(timedelta(seconds=int(seconds)))
    usual = picture.usual_seconds
    known = f"  {_bar(seconds, usual)} usually {_seconds(usual)}" if usual is not None else ""
    first = Line(f"{_FRAMES[frame % len(_FRAMES)]} {picture.title}  {spent}{known}")
    return (first, *(Line(f"  {remark}", Look.FAINT, folds=True) for remark in picture.remarks))


def _bar(seconds: float, usual: float) -> str:
    """Never full: what takes longer than usual is not done."""
    done = min(_CELLS - 1, int(_CELLS * seconds / usual)) if usual > 0 else _CELLS - 1
    return "━" * done + "─" * (_CELLS - done)


def _seconds(usual: float) -> str:
    return format_span(timedelta(seconds=max(1, round(usual))))
