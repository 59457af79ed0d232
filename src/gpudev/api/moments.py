"""Times in queries, as the database takes them."""

from __future__ import annotations

from datetime import UTC, datetime

from gpudev.domain.errors import Invalid


def as_utc(moment: datetime) -> datetime:
    """At the ends of the calendar a time may have no form in UTC."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise Invalid(
            "The time is beyond the calendar.", hint="Write it like 2026-03-01T12:00:00Z.", code="bad_time"
        ) from None
