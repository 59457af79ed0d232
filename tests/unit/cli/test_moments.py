"""Times as people type them, in their own zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from gpudev.cli.render.times import Now
from gpudev.cli.time_options import parse_moment

ZONE = timezone(timedelta(hours=2))
NOW = Now(datetime(2030, 1, 1, 12, 0, tzinfo=UTC), ZONE)
"""A Tuesday, two in the afternoon where it is typed."""


@pytest.mark.parametrize(
    "text,moment",
    [
        ("15:30", datetime(2030, 1, 1, 15, 30, tzinfo=ZONE)),
        ("9:00", datetime(2030, 1, 2, 9, 0, tzinfo=ZONE)),
        ("today 16:00", datetime(2030, 1, 1, 16, 0, tzinfo=ZONE)),
        ("Tomorrow  14:00", datetime(2030, 1, 2, 14, 0, tzinfo=ZONE)),
        ("friday 9:30", datetime(2030, 1, 4, 9, 30, tzinfo=ZONE)),
        ("tuesday 15:00", datetime(2030, 1, 8, 15, 0, tzinfo=ZONE)),
        ("2030-02-01 14:00", datetime(2030, 2, 1, 14, 0, tzinfo=ZONE)),
        ("2030-02-01T14:00Z", datetime(2030, 2, 1, 14, 0, tzinfo=UTC)),
        ("2030-02-01T14:00", datetime(2030, 2, 1, 14, 0, tzinfo=ZONE)),
        ("in 2h30m", datetime(2030, 1, 1, 14, 30, tzinfo=UTC)),
    ],
)
def test_a_moment_is_understood(text: str, moment: datetime) -> None:
    assert parse_moment(text, NOW) == moment


@pytest.mark.parametrize("text", ["", "soon", "25:00", "someday 14:00", "14", "in a while"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_moment(text, NOW)
