"""Lengths of time as people type and read them."""

from __future__ import annotations

import re
from datetime import UTC, timedelta

import pytest

from gpudev.cli.render.times import Now, format_moment, format_span
from gpudev.cli.time_options import parse_hours, parse_seconds
from tests.support.wire_values import NOW


@pytest.mark.parametrize(
    "text, hours",
    [("2", 2), ("1.5h", 1.5), ("90m", 1.5), ("90min", 1.5), ("2h30m", 2.5), ("2 h 30 min", 2.5), ("1D", 24)],
)
def test_lengths_that_are_understood(text: str, hours: float) -> None:
    assert parse_hours(text) == pytest.approx(hours)


@pytest.mark.parametrize("text, seconds", [("90", 90), ("0.5s", 0.5), ("10m", 600), ("1h30m", 5400)])
def test_timeouts_that_are_understood(text: str, seconds: float) -> None:
    assert parse_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["h", "2h30", "-2h", "soon", "2x", "1h-30m", "nan"])
def test_lengths_that_are_not(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        parse_hours(text)


@pytest.mark.parametrize(
    "seconds, text",
    [
        (-5, "0 s"),
        (44.6, "45 s"),
        (60, "1 min"),
        (3599, "1 h"),
        (3600, "1 h"),
        (9000, "2 h 30 min"),
        (172800, "48 h"),
    ],
)
def test_spans_in_words(seconds: float, text: str) -> None:
    assert format_span(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    "ahead, text",
    [
        (timedelta(hours=1), "15:00"),
        (timedelta(hours=12), "Wed 02:00"),
        (timedelta(days=-3), "Sat 14:00"),
        (timedelta(days=30), "2030-02-14 14:00"),
    ],
)
def test_moments_in_words(ahead: timedelta, text: str) -> None:
    assert format_moment(NOW + ahead, Now(NOW, UTC)) == text
