"""How things stand while one waits, as a drawing: what is done, for how long, and what is usual."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from gpudev.cli.render.times import format_span
from gpudev.cli.terminal.lines import Line, Look

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
