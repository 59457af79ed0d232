"""Why a reservation is where it is, out of its document and its events, in words.

First the answer, then what happened, where the time went, and what to type next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType

from gpudev.cli.render.reservations import format_outcome, format_place
from gpudev.cli.render.table import format_table
from gpudev.cli.render.times import Now, format_span
from gpudev.cli.stages import ACTIVE, BEGINS, CLEANUP, LOOKING, QUEUE, START, STOPPED
from gpudev.client.ssh import id8
from gpudev.texts.vocabulary import TERMINAL, EventKind, Status
from gpudev.wire.jobs import JobDetail, JobEvent

NAMES: Mapping[str, str] = MappingProxyType(
    {
        LOOKING: "looked at",
        QUEUE: "in the queue",
        START: "starting",
        ACTIVE: "active",
        STOPPED: "stopped",
        CLEANUP: "cleaning up",
    }
)
_OF_NOTE: Mapping[str, str] = MappingProxyType(
    {
        EventKind.REQUEUED: "It was placed once before, and that did not hold",
        EventKind.EXTENSION_REFUSED: "More time was refused",
        EventKind.IDLE_WARNED: "It was found idle",
        EventKind.OUT_OF_MEMORY: "It ran out of memory",
        EventKind.NODE_LEAVES: "Its node is taken out of service",
        EventKind.NODE_STAYS: "Its node stays in service",
        EventKind.WARNING: "The cluster warned",
    }
)


@dataclass(frozen=True, slots=True)
class Stage:
    name: str
    seconds: float
    is_running: bool
    steps: tuple[str, ...] = ()
    """What was told in its course, with the seconds until the next."""


@dataclass(frozen=True, slots=True)
class Causes:
    headline: str
    because: tuple[str, ...]
    """From the nearest cause to those before it."""
    stages: tuple[Stage, ...]
    next_steps: tuple[str, ...]
    """Commands, and what else can be done."""


def explain(job: JobDetail, events: Sequence[JobEvent], now: datetime) -> Causes:
    stages = list_stages(events, now)
    return Causes(_headline(job, stages), _because(job, events), stages, _next_steps(job, events))


def list_stages(events: Sequence[JobEvent], now: datetime) -> tuple[Stage, ...]:
    """In their order. One that came several times is there as often."""
    starts = [event for event in events if event.kind in BEGINS]
    stages = []
    for index, event in enumerate(starts):
        after = starts[index + 1] if index + 1 < len(starts) else None
        if not (name := BEGINS[event.kind]):
            continue
        end = after.at if after else now
        seconds = max(0.0, (end - event.at).total_seconds())
        stages.append(Stage(name, seconds, after is None, _list_steps(events, event, end)))
    return tuple(stages)


def _list_steps(events: Sequence[JobEvent], begun: JobEvent, end: datetime) -> tuple[str, ...]:
    told = [event for event in events if event.kind == EventKind.PROGRESS and begun.at <= event.at <= end]
    ends = [*(event.at for event in told[1:]), *([end] if told else [])]
    return tuple(
        f"{event.message.rstrip('.')}: {(until - event.at).total_seconds():.1f} s"
        for event, until in zip(told, ends, strict=True)
    )


def _headline(job: JobDetail, stages: Sequence[Stage]) -> str:
    who = f"{job.name} ({id8(job.job_id)})"
    running: Mapping[str, str] = {
        Status.PENDING: "has not been looked at yet",
        Status.QUEUED: "waits in the queue",
        Status.PREPARING: "is starting",
        Status.ACTIVE: "is active",
        Status.STOPPED: "is stopped",
    }
    if job.status in running:
        finished = f", and its command has ended: {outcome}" if (outcome := format_outcome(job)) else ""
        return f"{who} {running[job.status]}{finished}."
    has_run = any(stage.name == ACTIVE for stage in stages)
    before = "" if has_run else ", before it ever ran"
    outcome = format_outcome(job)
    command = f", and its command: {outcome}" if outcome else ""
    return f"{who} is over: {job.status}{before}{command}."


def _because(job: JobDetail, events: Sequence[JobEvent]) -> tuple[str, ...]:
    ends = [event for event in events if event.kind in TERMINAL]
    told = job.failure_reason or job.current_detailed_status or (ends[-1].message if ends else "")
    standing = job.warning or ""
    notes = [
        f"{words}: {event.message}"
        for event in reversed(events)
        if (words := _OF_NOTE.get(event.kind)) and event.message not in standing
    ]
    reason = f"{told} ({job.reason})" if job.reason else told
    warning = f"Note: {standing}" if standing else ""
    return tuple(dict.fromkeys(line for line in (reason, *notes, warning) if line))


def _next_steps(job: JobDetail, events: Sequence[JobEvent]) -> tuple[str, ...]:
    short = id8(job.job_id)
    hint = (job.hint or "").replace(" ID", f" {short}")
    commands: Mapping[str, tuple[str, ...]] = {
        Status.PENDING: (f"gpu-dev show {short}",),
        Status.QUEUED: (f"gpu-dev queue -t {job.gpu_type}", f"gpu-dev cancel {short}"),
        Status.PREPARING: (f"gpu-dev logs -f {short}",),
        Status.ACTIVE: (
            f"gpu-dev connect {short}",
            _same_again(job) if _is_node_leaving(events) else f"gpu-dev extend {short} 2h",
        ),
        Status.STOPPED: (f"gpu-dev cancel {short}",),
    }
    steps = commands.get(job.status, (_same_again(job),))
    return (*([hint] if hint else []), *steps)


def _is_node_leaving(events: Sequence[JobEvent]) -> bool:
    """Then there is no more time to be had on it."""
    told = [event.kind for event in events if event.kind in {EventKind.NODE_LEAVES, EventKind.NODE_STAYS}]
    return told[-1:] == [EventKind.NODE_LEAVES]


def _same_again(job: JobDetail) -> str:
    disk = f" --disk {job.disk_name}" if job.disk_name and job.disk_name != "default" else ""
    return f"gpu-dev reserve -t {job.gpu_type} -g {job.gpu_count} -H {round(job.duration_hours, 2):g}{disk}"


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
