"""What the commands print, as files to be read: `tests/golden/cli/*.txt`."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, timedelta
from pathlib import Path

import pytest

from gpudev.cli.main import COMMANDS, run
from gpudev.cli.render.cluster import format_availability, format_queue, format_status
from gpudev.cli.render.data import format_json, format_yaml
from gpudev.cli.render.progress import format_event, format_waiting
from gpudev.cli.render.reservations import format_detail, format_list, format_names, format_ready
from gpudev.cli.render.times import Now
from gpudev.wire.jobs import JobList
from tests.support.golden import check_golden
from tests.support.wire_values import (
    A_JOB,
    ACTIVE,
    AVAILABILITY,
    FAILED,
    GANG,
    H100,
    NOW,
    QUEUED,
    STATUS,
    WAITING,
    an_event,
)

CLOCK = Now(NOW, UTC)
JOBS = [
    A_JOB,
    QUEUED,
    replace(QUEUED, estimated_start_at=None, name="waits-for-long"),
    replace(A_JOB, status="preparing", gpu_type="cpu-x86", gpu_count=0),
    ACTIVE,
    FAILED,
]
WRITTEN_BY_OTHERS = {"up", "down", "server", "admin"}


def test_list() -> None:
    check_golden("cli/list.txt", format_list(JOBS, CLOCK))


def test_list_by_name() -> None:
    check_golden("cli/list_name.txt", format_names(JOBS))


def test_list_as_yaml() -> None:
    check_golden("cli/list_yaml.txt", format_yaml(JobList(jobs=[ACTIVE], total=1, limit=50, offset=0)))


@pytest.mark.parametrize("job", [QUEUED, ACTIVE, FAILED], ids=lambda job: job.status)
def test_show(job: object) -> None:
    assert isinstance(job, type(A_JOB))
    check_golden(f"cli/show_{job.status}.txt", format_detail(job, CLOCK))


def test_show_gang() -> None:
    check_golden("cli/show_gang.txt", format_detail(GANG, CLOCK))


def test_show_as_json() -> None:
    check_golden("cli/show_json.txt", format_json(ACTIVE))


def test_ready() -> None:
    config = Path("/home/ada/.gpu-dev/7f3a91c2-sshconfig")
    real = format_ready(ACTIVE, CLOCK, config)
    simulated = format_ready(replace(ACTIVE, simulated=True), CLOCK, config)
    gang = format_ready(GANG, CLOCK, config)
    check_golden("cli/ready.txt", f"{real}\n\n{simulated}\n\n{gang}")


def test_avail() -> None:
    gone = replace(H100, gpu_type="b200", total=0, available=0, in_use=0, max_reservable=0)
    check_golden("cli/avail.txt", format_availability([*AVAILABILITY.availability.values(), gone]))


def test_avail_of_nothing() -> None:
    assert format_availability([]) == "No GPU types are on offer."


def test_queue() -> None:
    check_golden("cli/queue.txt", format_queue(WAITING, CLOCK))


def test_status() -> None:
    check_golden("cli/status.txt", format_status(STATUS))


def test_progress() -> None:
    why = QUEUED.current_detailed_status or ""
    event = an_event(2, "queued", "queued", why)
    soon = replace(QUEUED, estimated_start_at=NOW + timedelta(seconds=10))
    lines = [
        format_event(event, CLOCK, verbose=False),
        format_event(event, CLOCK, verbose=True),
        format_waiting(QUEUED, why, CLOCK),
        format_waiting(soon, why, CLOCK),
        format_waiting(replace(QUEUED, estimated_start_at=None), why, CLOCK),
    ]
    check_golden("cli/progress.txt", "\n".join(lines))


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - WRITTEN_BY_OTHERS))
def test_help(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert run([name, "-h"]) == 0
    check_golden(f"cli/help_{name}.txt", capsys.readouterr().out.rstrip("\n"))
