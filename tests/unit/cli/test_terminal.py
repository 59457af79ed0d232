"""With a person at a terminal: questions, moving progress, Ctrl-C."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence

import pytest

from gpudev.client import codec
from tests.support.fake_api import FakeApi, Reply
from tests.support.terminal import Seen, run_on_terminal
from tests.support.wire_values import ACTIVE, JOB_ID, QUEUED, an_event, as_sse
from tests.unit.cli.conftest import plan_reservation

SPINNER_HIDES_CURSOR = "\x1b[?25l"
EVENTS = f"/v1/jobs/{JOB_ID}/events"


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch, api: FakeApi) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")


def type_command(*arguments: str, answers: Sequence[tuple[str, str]] = ()) -> Seen:
    command = [sys.executable, "-m", "gpudev.cli.main", *arguments]
    return run_on_terminal(command, os.environ, answers)


def test_a_type_that_was_not_given_is_asked_for(api: FakeApi) -> None:
    plan_reservation(api, "submitted", "active")
    questions = [("GPU type", "h100\r"), ("How many GPUs [1]", "2\r"), ("hours [4.0]", "\r")]
    seen = type_command("reserve", answers=questions)
    assert seen.code == 0
    assert "t4 (simulated)" in seen.text
    sent = api.seen("POST", "/v1/jobs/submit")[0].json
    assert (sent["gpu_type"], sent["gpu_count"], sent["duration_hours"]) == ("h100", 2, 4.0)


@pytest.mark.parametrize("flag", ["--yes", "--no-interactive"])
def test_nothing_is_asked_when_told_not_to(flag: str) -> None:
    seen = type_command("reserve", flag)
    assert seen.code == 2
    assert "Which GPU type? There are h100, t4." in seen.text


def test_progress_moves_unless_plain_output_is_wanted(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    plan_reservation(api, "submitted", "active")
    assert SPINNER_HIDES_CURSOR in type_command("reserve", "-t", "h100").text
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in type_command("reserve", "-t", "h100").text


def test_ctrl_c_in_the_queue(api: FakeApi) -> None:
    hold = threading.Event()
    plan_reservation(api, "submitted")
    api.on("GET", EVENTS, Reply(stream=as_sse(an_event(1, "queued", "queued")), hold=hold))
    api.on("GET", f"/v1/jobs/{JOB_ID}", Reply(body=codec.encode(QUEUED)))
    seen = type_command("reserve", "-t", "h100", answers=[("position 2", "\x03")])
    hold.set()
    assert seen.code == 130
    assert "Reservation 7f3a91c2 goes on." in seen.text


def test_cancel_asks_first(api: FakeApi) -> None:
    api.on("GET", "/v1/jobs/train", Reply(body=codec.encode(ACTIVE)))
    seen = type_command("cancel", "train", answers=[("Cancel it? [y/N]", "n\r")])
    assert seen.code == 1
    assert not api.seen("POST", f"/v1/jobs/{JOB_ID}/cancel")
