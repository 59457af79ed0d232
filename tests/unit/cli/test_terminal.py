"""With a person at a terminal: what is asked, and what is not. `test_screens.py` has the screens."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import pytest

from gpudev.client import codec
from tests.support.fake_api import FakeApi, Reply
from tests.support.terminal import Seen, run_on_terminal
from tests.support.wire_values import ACTIVE, JOB_ID
from tests.unit.cli.conftest import plan_reservation

SPINNER_HIDES_CURSOR = "\x1b[?25l"


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch, api: FakeApi) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")


def type_command(*arguments: str, answers: Sequence[tuple[str, str]] = ()) -> Seen:
    command = [sys.executable, "-m", "gpudev.cli.main", *arguments]
    return run_on_terminal(command, os.environ, answers)


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


def test_in_ci_nobody_is_asked_whatever_the_terminal_looks_like(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    seen = type_command("reserve")
    assert seen.code == 2
    assert "Which GPU type?" in seen.text
    assert "\x1b" not in seen.text


def test_cancel_asks_first(api: FakeApi) -> None:
    api.on("GET", "/v1/jobs/train", Reply(body=codec.encode(ACTIVE)))
    seen = type_command("cancel", "train", answers=[("Cancel it? [y/N]", "n\r")])
    assert seen.code == 1
    assert not api.seen("POST", f"/v1/jobs/{JOB_ID}/cancel")
