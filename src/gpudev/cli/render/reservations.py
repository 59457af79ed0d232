"""Reservations in words: the listing, one in full with its use, and how to reach it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpudev.cli.render.table import format_fields, format_table
from gpudev.cli.render.times import Now, format_hours, format_moment, format_span, format_wait
from gpudev.client.ssh import host_alias, id8
from gpudev.texts.vocabulary import Status
from gpudev.wire.jobs import JobDetail, JobEvent, JobNode, JobUsage, UsagePoint


def format_gpus(gpu_type: str, count: int, *, simulated: bool = False) -> str:
    """`2 x h100`, or the bare type where there are no GPUs; simulated ones are never called real."""
    text = f"{count} x {gpu_type}" if count else gpu_type
    return f"{text} (simulated)" if simulated else text


def format_list(
    jobs: Sequence[JobDetail], now: Now, *, with_users: bool = False, width: int | None = None
) -> str:
    header = ("ID", "NAME", "GPUS", "STATUS", "WHEN")
    rows = [(id8(job.job_id), job.name, _gpus_of(job), _status_of(job), _when(job, now)) for job in jobs]
    if with_users:
        owned = [(job.user_id, *row) for job, row in zip(jobs, rows, strict=True)]
        return format_table(("USER", *header), owned, width=width)
    return format_table(header, rows, width=width)


def format_names(jobs: Sequence[JobDetail]) -> str:
    return "\n".join(job.name for job in jobs)


def format_detail(job: JobDetail, now: Now, *, usage: str | None = None) -> str:
    """Everything known of one reservation, a line each."""
    moments = (
        ("Asked for at", job.created_at),
        ("Active since", job.launched_at),
        ("Ended at", job.reservation_ended),
    )
    fields: list[tuple[str, str | None]] = [
        ("Reservation", job.reservation_id),
        ("Name", job.name),
        ("Status", job.status),
        ("Outcome", format_outcome(job)),
        ("GPUs", _gpus_of(job)),
        ("Length", format_hours(job.duration_hours)),
        ("Disk", job.disk_name),
        *((name, format_moment(at, now) if at else None) for name, at in moments),
        (
            "Ends",
            format_wait(job.expires_at, now) if job.expires_at and job.status == Status.ACTIVE else None,
        ),
        ("Queue", format_place(job, now) if job.status == Status.QUEUED else None),
        ("Detail", job.current_detailed_status or job.failure_reason),
        ("Reason", job.reason),
        ("Use", usage),
        ("Kept", f"until {format_moment(job.kept_until, now)}" if job.kept_until else None),
        ("Warning", job.warning),
        ("Extension", job.extension_error),
        ("Memory", _format_oom(job, now)),
        ("Hint", job.hint),
        ("Connect", f"gpu-dev connect {id8(job.job_id)}" if job.status == Status.ACTIVE else None),
        ("Address", f"{job.node_ip} port {job.node_port}" if job.node_ip else None),
        *((f"Node {node.rank}", _format_node(job, node)) for node in job.nodes or ()),
    ]
    return format_fields([(name, value) for name, value in fields if value])


def format_outcome(job: JobDetail) -> str | None:
    """What became of the command of `gpu-dev submit`: `failed, exit code 7`; None if that is not known."""
    if job.outcome is None:
        return None
    words = job.outcome.replace("_", " ")
    return words if job.exit_code is None else f"{words}, exit code {job.exit_code}"


def _status_of(job: JobDetail) -> str:
    outcome = format_outcome(job)
    return job.status if outcome is None else f"{job.status} ({outcome})"


def _format_node(job: JobDetail, node: JobNode) -> str:
    if node.node_ip is None:
        return node.node
    command = f"gpu-dev connect {id8(job.job_id)} --node {node.rank}"
    return f"{node.node} at {node.node_ip} port {node.node_port}: {command}"


def format_place(told: JobDetail | JobEvent, now: Now) -> str:
    """Position and start of a request that waits."""
    place = f"position {told.queue_position}" if told.queue_position else "waiting"
    if told.estimated_start_at is None:
        return f"{place}, start not known yet"
    return f"{place}, starts by {format_wait(told.estimated_start_at, now)}"


def format_ready(job: JobDetail, now: Now, config: Path) -> str:
    """What the user came for: it is there, until when, and how to get in."""
    until = f", yours until {format_wait(job.expires_at, now)}" if job.expires_at else ""
    nodes = f" on {len(job.nodes)} nodes" if job.nodes else ""
    lines = [
        f"{job.name} is ready: {_gpus_of(job)}{nodes}{until}.",
        f"Connect with: gpu-dev connect {id8(job.job_id)}",
        f"or with:      ssh -F {config} {host_alias(job.job_id)}",
    ]
    if job.nodes:
        ranks = ", ".join(f"--node {node.rank}" for node in job.nodes[1:])
        lines.append(f"Other nodes:  gpu-dev connect {id8(job.job_id)} with {ranks}")
    return "\n".join(lines)


def _format_oom(job: JobDetail, now: Now) -> str | None:
    if not job.oom_count or job.last_oom_at is None:
        return None
    return f"ran out {job.oom_count}x, last {format_moment(job.last_oom_at, now)}"


def _gpus_of(job: JobDetail) -> str:
    return format_gpus(job.gpu_type, job.gpu_count, simulated=bool(job.simulated))


def _when(job: JobDetail, now: Now) -> str:
    match job.status:
        case Status.PENDING:
            return "being looked at"
        case Status.QUEUED:
            return format_place(job, now)
        case Status.PREPARING:
            return "starting"
        case Status.ACTIVE if job.expires_at:
            return f"{format_span(job.expires_at - now.at)} left, until {format_moment(job.expires_at, now)}"
        case Status.STOPPED if job.stopped_at:
            return f"{format_hours(job.duration_hours)} left, stopped {format_moment(job.stopped_at, now)}"
        case _:
            return f"ended {format_moment(job.reservation_ended, now)}" if job.reservation_ended else ""


_LEVELS = "▁▂▃▄▅▆▇█"
_UNKNOWN = "·"
_FULL = 100.0


def format_usage(usage: JobUsage) -> str | None:
    """`▁▁▇█▇ 62% of the GPU, no sign of use for 20% of the time`; None if nothing was measured."""
    if not usage.points:
        return None
    line = "".join(map(_level, usage.points))
    known = [point.gpu_percent for point in usage.points if point.gpu_percent is not None]
    words = [f"GPU {_mean(known):.0f}% on average"] if known else []
    idle = _mean([point.idle_share for point in usage.points])
    words.append(f"no sign of use for {100 * idle:.0f}% of the time")
    note = " (simulated)" if usage.simulated else ""
    return f"{line} {', '.join(words)}{note}"


def _level(point: UsagePoint) -> str:
    if point.gpu_percent is None:
        return _UNKNOWN
    return _LEVELS[min(len(_LEVELS) - 1, int(point.gpu_percent / _FULL * len(_LEVELS)))]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
