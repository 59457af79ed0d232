"""Logs are JSON lines without secrets."""

from __future__ import annotations

import json

import pytest
import structlog

from gpudev.telemetry import configure_logging


def test_a_logged_error_shows_where_and_not_what_was_in_the_variables(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logging("info")
    api_key = "very-" + "secret"

    def fail() -> None:
        kept_for_the_traceback = api_key
        raise ValueError(len(kept_for_the_traceback))

    try:
        fail()
    except ValueError:
        structlog.get_logger().exception("it_failed")
    finally:
        structlog.reset_defaults()
    line = capsys.readouterr().err
    assert json.loads(line)["event"] == "it_failed"
    assert "test_telemetry.py" in line
    assert "very-secret" not in line
