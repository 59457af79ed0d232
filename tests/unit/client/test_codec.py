"""JSON to wire values and back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from gpudev.client import codec
from gpudev.client.errors import ServerFailed
from gpudev.wire.cluster import ErrorBody
from gpudev.wire.jobs import JobDetail, JobList, SubmitRequest
from tests.support.wire_values import A_JOB, ACTIVE, AVAILABILITY, QUEUED, STATUS


@pytest.mark.parametrize(
    "value",
    [A_JOB, ACTIVE, QUEUED, AVAILABILITY, STATUS, JobList(jobs=[ACTIVE], total=1, limit=50, offset=0)],
    ids=lambda value: type(value).__name__,
)
def test_what_is_written_reads_back_as_the_same(value: object) -> None:
    assert codec.loads(type(value), codec.dumps(value)) == value


def test_none_is_left_out() -> None:
    sent = codec.encode(SubmitRequest(gpu_type="t4", gpu_count=1, duration_hours=0.5))
    assert sent == {
        "gpu_type": "t4",
        "gpu_count": 1,
        "duration_hours": 0.5,
        "env_vars": {},
        "ssh_public_keys": [],
    }


def test_times_are_sent_in_utc_with_a_z() -> None:
    east = timezone(timedelta(hours=2))
    assert codec.encode(datetime(2030, 1, 15, 14, 0, tzinfo=east)) == "2030-01-15T12:00:00Z"


@pytest.mark.parametrize("fraction", ["", ".250", ".250000"])
def test_times_are_read_with_any_fraction(fraction: str) -> None:
    data = {**codec.encode(A_JOB), "created_at": f"2030-01-15T12:00:00{fraction}Z"}
    expected = datetime(2030, 1, 15, 12, 0, 0, 250_000 if fraction else 0, UTC)
    assert codec.decode(JobDetail, data).created_at == expected


def test_fields_of_a_newer_server_are_ignored() -> None:
    assert codec.decode(JobDetail, {**codec.encode(A_JOB), "colour": "green"}) == A_JOB


def test_a_null_is_read_as_not_known() -> None:
    assert codec.decode(JobDetail, {**codec.encode(A_JOB), "expires_at": None}) == A_JOB


def test_whole_hours_are_hours() -> None:
    assert codec.decode(JobDetail, {**codec.encode(A_JOB), "duration_hours": 4}).duration_hours == 4.0


@pytest.mark.parametrize(
    "body",
    [b"<html>", b"[]", b"{}", b'{"detail": 3, "code": "x"}', b'{"detail": true, "code": "x"}', b"\xff"],
)
def test_an_answer_of_another_shape_is_the_servers_fault(body: bytes) -> None:
    with pytest.raises(ServerFailed, match="cannot be read"):
        codec.loads(ErrorBody, body)
