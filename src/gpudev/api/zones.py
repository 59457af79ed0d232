"""The time zone of the reader: sentences for a person have their times in it."""

from __future__ import annotations

from datetime import UTC, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from starlette.requests import HTTPConnection

from gpudev.wire.versions import TIME_ZONE_HEADER

_LONGEST_NAME = 64


def zone_of(request: HTTPConnection) -> tzinfo:
    """The zone that the client named; UTC if it named none that is known here."""
    return find_zone(request.headers.get(TIME_ZONE_HEADER, ""))


@lru_cache(maxsize=1024)
def find_zone(name: str) -> tzinfo:
    """The zone of that IANA name, or UTC: a name that cannot be used is never an error."""
    if not 0 < len(name) <= _LONGEST_NAME:
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown; not a relative path; a folder of zones
        return UTC
