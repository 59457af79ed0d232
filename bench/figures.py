"""Figures of a benchmark: percentiles of what was measured, and tables of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing that was measured, in words, and its samples in seconds."""

    words: str
    seconds: Sequence[float]

    @property
    def p50(self) -> float:
        return percentile(self.seconds, 50)

    @property
    def p95(self) -> float:
        return percentile(self.seconds, 95)


def percentile(samples: Sequence[float], percent: float) -> float:
    """By nearest rank: always a value that was really measured, never one between two."""
    rank = math.ceil(len(samples) * percent / 100)
    return sorted(samples)[max(rank, 1) - 1]


def milliseconds(seconds: float) -> str:
    """With a decimal where it says something."""
    value = seconds * 1000
    return f"{value:.1f}" if abs(value) < 100 else f"{value:.0f}"


def table(heading: str, figures: Sequence[Figure]) -> str:
    rows = [
        f"| {figure.words} | {milliseconds(figure.p50)} | {milliseconds(figure.p95)} |" for figure in figures
    ]
    return "\n".join([f"| {heading} | p50 | p95 |", "|---|---:|---:|", *rows])
