"""Times: in queries, as the database takes them, and the time zone of the reader."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from typing import Annotated, Any

from fastapi import Depends, Request
from pydantic import BeforeValidator
from starlette.requests import HTTPConnection

from gpudev.domain.errors import Invalid
from gpudev.texts.zones import zone_or_utc
from gpudev.wire.versions import TIME_ZONE_HEADER

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


def zone_of(request: HTTPConnection) -> tzinfo:
    """The zone that the client named; UTC if it named none that is known here."""
    return zone_or_utc(request.headers.get(TIME_ZONE_HEADER, ""))


async def _zone(request: Request) -> tzinfo:
    return zone_of(request)


Zone = Annotated[tzinfo, Depends(_zone)]
