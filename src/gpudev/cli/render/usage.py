"""How much a dev server was used, in one line."""

from __future__ import annotations

from collections.abc import Sequence

from gpudev.wire.jobs import JobUsage, UsagePoint

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
