"""How a submitted command ended, from files that anybody on its server can write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudev.adapters.kubernetes.script_reports import read_job_report
from gpudev.domain.job import MAX_OUTPUT, Job, find_outcome, read_job, tell_end
from gpudev.texts.vocabulary import Outcome, Status
from tests.support.words import words_of


@pytest.mark.parametrize(
    "code, expected",
    [
        (b"0\n", 0),
        (b"255\n", 255),
        (b"7", 7),
        (None, None),
        (b"", None),
        (b"256", None),
        (b"-1", None),
        (b"1e9", None),
        ("٣".encode(), None),
        (b"9" * 5000, None),
    ],
)
def test_only_an_exit_code_is_one(code: bytes | None, expected: int | None) -> None:
    assert read_job(code, None, b"", is_fetched=False).exit_code == expected


@pytest.mark.parametrize(
    "job, status, outcome, words",
    [
        (Job(0), Status.CANCELLED, Outcome.SUCCEEDED, "finished with exit code 0."),
        (Job(7), Status.EXPIRED, Outcome.FAILED, "finished with exit code 7."),
        (Job(143, Outcome.STOPPED), Status.CANCELLED, Outcome.STOPPED, "stopped (exit code 143)."),
        (Job(143, Outcome.TIMED_OUT), Status.CANCELLED, Outcome.TIMED_OUT, "time was over (exit code 143)."),
        (Job(), Status.EXPIRED, Outcome.TIMED_OUT, "because the time was over."),
        (Job(), Status.CANCELLED, Outcome.STOPPED, "The command was stopped."),
    ],
)
def test_the_outcome_follows_from_the_end(job: Job, status: Status, outcome: Outcome, words: str) -> None:
    assert find_outcome(job, status) is outcome
    assert words_of(tell_end(job, outcome)).endswith(words)


@given(
    code=st.none() | st.binary(), why=st.none() | st.binary(), output=st.binary(), is_fetched=st.booleans()
)
def test_any_bytes_are_read(
    code: bytes | None, why: bytes | None, output: bytes, *, is_fetched: bool
) -> None:
    job = read_job(code, why, output, is_fetched=is_fetched)
    assert "\0" not in job.output
    assert job.exit_code is None or 0 <= job.exit_code <= 255


@given(st.text() | st.text().map("code 1\noutput\n{}".format))
def test_any_report_is_read(said: str) -> None:
    job = read_job_report(said)
    assert job is None or "\0" not in job.output


def test_a_report_has_all_that_is_known() -> None:
    assert read_job_report("code 7\nwhy time\nfetched\noutput\na\noutput\n") == Job(
        7, Outcome.TIMED_OUT, is_fetched=True, output="a\noutput\n"
    )
    assert read_job_report("output\n") == Job()
    assert read_job_report("") is None


def test_only_the_end_of_the_output_is_kept() -> None:
    job = read_job(None, None, b"a" + b"b" * MAX_OUTPUT, is_fetched=False)
    assert job.output == "b" * MAX_OUTPUT
