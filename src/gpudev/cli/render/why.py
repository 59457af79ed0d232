"""`gpu-dev why` in words: the answer, what happened, where the time went, and what to type next."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from gpudev.cli.causes import NAMES, Causes, Stage, explain
from gpudev.cli.render.reservations import format_place
from gpudev.cli.render.table import format_table
from gpudev.cli.render.times import Now, format_span
from gpudev.cli.stages import LOOKING, QUEUE, START
from gpudev.texts.vocabulary import Status
from gpudev.wire.jobs import JobDetail, JobEvent

_MINUTE = 60.0


def format_why(job: JobDetail, events: Sequence[JobEvent], now: Now) -> str:
    causes = explain(job, events, now.at)
    place = [format_place(job, now).capitalize() + "."] if job.status == Status.QUEUED else []
    parts = [
        "\n".join([causes.headline, *(f"  {line}" for line in (*causes.because, *place))]),
        _section("What happened", _format_events(events, now)),
        _section("Where the time went", _format_stages(causes.stages)),
        _section("Next", "\n".join(causes.next_steps)),
    ]
    return "\n\n".join(part for part in parts if part)


def encode_why(job: JobDetail, events: Sequence[JobEvent], now: Now) -> dict[str, object]:
    causes = explain(job, events, now.at)
    return {"job": job, "events": list(events), **_encode_causes(causes)}


def _encode_causes(causes: Causes) -> dict[str, object]:
    stages = [
        {"stage": NAMES[stage.name], "seconds": round(stage.seconds, 3), "is_running": stage.is_running}
        for stage in causes.stages
    ]
    return {"because": list(causes.because), "stages": stages, "next": list(causes.next_steps)}


def _section(title: str, text: str) -> str:
    if not text:
        return ""
    return "\n".join([f"{title}:", *(f"  {line}" for line in text.splitlines())])


def _format_events(events: Sequence[JobEvent], now: Now) -> str:
    rows = [
        (
            f"{event.at.astimezone(now.zone):%H:%M:%S}",
            f"+{_seconds(event.elapsed_seconds)}",
            event.kind,
            event.message,
        )
        for event in events
    ]
    return format_table(("TIME", "AFTER", "WHAT", "WORDS"), rows, frozenset({1})) if rows else ""


def _format_stages(stages: Sequence[Stage]) -> str:
    """With the share of each in the way to a running server, which is what people wait for."""
    before_use = [stage for stage in stages if stage.name in {LOOKING, QUEUE, START}]
    total = sum(stage.seconds for stage in before_use) or 1.0
    lines = []
    for stage in stages:
        share = f"  {stage.seconds / total:4.0%}" if stage in before_use else ""
        so_far = "  so far" if stage.is_running else ""
        lines.append(f"{NAMES[stage.name]:12}  {_seconds(stage.seconds):>12}{share}{so_far}")
        lines += [f"  {step}" for step in stage.steps]
    return "\n".join(lines)


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < _MINUTE else format_span(timedelta(seconds=seconds))
