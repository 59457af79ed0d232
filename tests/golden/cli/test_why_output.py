"""`gpu-dev why`, for each way a reservation can go: `tests/golden/cli/why_*.txt`."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, timedelta

import pytest

from gpudev.cli.render.explain_status import format_why, list_stages
from gpudev.cli.render.times import Now
from gpudev.wire.jobs import JobDetail, JobEvent
from tests.support.golden import check_golden
from tests.support.wire_values import A_JOB, ACTIVE, FAILED, NOW, QUEUED

CLOCK = Now(NOW, UTC)


def history(*told: tuple[float, str, str]) -> list[JobEvent]:
    """Events by the minutes before now, their kinds and words."""
    events: list[JobEvent] = []
    for number, (minutes, kind, message) in enumerate(told, 1):
        at = NOW - timedelta(minutes=minutes)
        elapsed = (at - events[-1].at).total_seconds() if events else 0.0
        events.append(
            JobEvent(
                number=number, kind=kind, message=message, at=at, elapsed_seconds=elapsed, status="whatever"
            )
        )
    return events


SUBMITTED = (10.0, "submitted", "Asked for 2 x h100 for 4 h.")
WAITS = (9.99, "queued", "Not enough GPUs of this type are free on any one node.")
PLACED = (2.0, "placed", "Placed on h100-0.")
FETCHING = (1.9, "progress", "Fetching the image: pytorch.")
THERE = (0.5, "active", "The dev server answers on SSH.")
GOES_AGAIN = "Reserve again with: gpu-dev reserve"

WAYS: dict[str, tuple[JobDetail, list[JobEvent]]] = {
    "pending": (A_JOB, history(SUBMITTED)),
    "queued": (
        replace(QUEUED, hint="It starts by itself. Free types are listed by: gpu-dev avail"),
        history(SUBMITTED, WAITS),
    ),
    "requeued": (
        replace(QUEUED, reason="placement_lost", current_detailed_status="The chosen node is gone."),
        history(SUBMITTED, (9.9, "placed", "Placed on h100-1."), (9.0, "requeued", "The node went away.")),
    ),
    "starting": (
        replace(A_JOB, status="preparing", current_detailed_status="Fetching the image: pytorch."),
        history(SUBMITTED, WAITS, PLACED, FETCHING),
    ),
    "active": (ACTIVE, history(SUBMITTED, WAITS, PLACED, FETCHING, THERE)),
    "expired": (
        replace(
            ACTIVE,
            status="expired",
            reason="time_is_up",
            current_detailed_status="The reserved time is over.",
            hint=GOES_AGAIN,
            disk_name="work",
        ),
        history(
            (300, "submitted", "Asked for 2 x h100 for 4 h."),
            (299.9, "placed", "Placed on h100-0."),
            (299.8, "active", "The dev server answers on SSH."),
            (80, "extension_refused", "48 hours are the most."),
            (60, "warned", "It ends in 5 minutes."),
            (55, "expired", "The reserved time is over."),
            (54.9, "cleaned", "Nothing is left of it."),
        ),
    ),
    "failed": (
        replace(FAILED, hint="The cluster's own words are in: gpu-dev show ID. Then reserve again."),
        history(SUBMITTED, PLACED, (1.0, "failed", "The dev server could not be started.")),
    ),
    "cancelled in the queue": (
        replace(A_JOB, status="cancelled", reason="cancelled_by_user", hint=GOES_AGAIN),
        history(SUBMITTED, WAITS, (1.0, "cancelled", "It was cancelled by its owner.")),
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_why(way: str) -> None:
    job, events = WAYS[way]
    check_golden(f"cli/why_{way.replace(' ', '_')}.txt", format_why(job, events, CLOCK))


@pytest.mark.parametrize("way", WAYS)
def test_the_stages_add_up_to_the_time_between_the_first_event_and_the_last(way: str) -> None:
    _, events = WAYS[way]
    is_over = events[-1].kind == "cleaned"
    end = events[-1].at if is_over else NOW
    stages = list_stages(events, NOW)
    assert sum(stage.seconds for stage in stages) == pytest.approx((end - events[0].at).total_seconds())
    assert [stage.is_running for stage in stages] == [False] * (len(stages) - 1) + [not is_over]


def test_why_of_nothing_that_is_known() -> None:
    assert format_why(A_JOB, [], CLOCK).startswith("train (7f3a91c2) has not been looked at yet.")
