"""What would become of a request, and how good the queue's forecasts are, on the wire."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from typing import Annotated

from gpudev.texts.vocabulary import Reason
from gpudev.wire.message import message
from gpudev.wire.text import Word


@message
class Nearby:
    """A request like the one that was asked for, which would start sooner."""

    gpu_type: str
    """Type of the GPUs."""
    gpu_count: int
    """How many of them, on all nodes together."""
    duration_hours: float
    """For how long."""
    starts_now: bool
    """There is room for it now."""
    estimated_start_at: datetime
    """When it would start."""


@message
class PreviewResponse:
    """What would become of the request if it came now, and nobody else before it."""

    starts_now: bool
    """There is room for it now."""
    estimated_start_at: datetime | None = None
    """When it would start at the latest; left out when that is not known."""
    estimated_wait_minutes: int | None = None
    """The same, counted from now."""
    likely_start: list[datetime] | None = None
    """From when to when it would probably start, by what was learned of others, if enough was."""
    reason: Annotated[str, Word(*Reason)] | None = None
    """Why it would wait, as a constant."""
    current_detailed_status: str | None = None
    """Why it would wait, in words that name what is in the way."""
    nearby: list[Nearby] = field(default_factory=list)
    """Up to three requests like it that would start sooner."""


@message
class TypeAccuracy:
    """How good the forecasts for one type were, over those who started in the last four weeks."""

    started: int
    """How many had to wait and have started."""
    promises_kept: float
    """The part of them that started when they were promised at first, or earlier."""
    promise_error_minutes: float
    """How far the first promise was off, on average."""
    likely_error_minutes: float | None = None
    """How far the middle of the likely window was off, on average."""
    bias: float | None = None
    """What they waited, divided by what the middle of the window had said."""
    coverage: float | None = None
    """The part of the windows that held the start; 8 of 10 are meant to."""


@message
class AccuracyResponse:
    accuracy: dict[str, TypeAccuracy]
    """Each type for which somebody has waited, by name."""
    timestamp: datetime
    """When this was read."""
