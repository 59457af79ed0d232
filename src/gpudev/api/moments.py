"""Times in queries, as the database takes them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BeforeValidator

from gpudev.domain.errors import Invalid

_NUMBER = re.compile(r"\s*[-+]?[0-9.eE+-]+\s*")


def _refuse_numbers(value: Any) -> Any:
    """Pydantic takes a number for the seconds since 1970, which is not in the document."""
    if isinstance(value, str) and _NUMBER.fullmatch(value) and "-" not in value.strip()[1:]:
        raise ValueError("must be a date and time like 2026-03-01T12:00:00Z")
    return value


Moment = Annotated[datetime, BeforeValidator(_refuse_numbers)]
"""A time in a query."""


def as_utc(moment: datetime) -> datetime:
    """At the ends of the calendar a time may have no form in UTC."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise Invalid("time_beyond_the_calendar", code="bad_time") from None
