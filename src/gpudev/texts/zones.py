"""Time zones by their names."""

from __future__ import annotations

from datetime import UTC, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

_LONGEST_NAME = 64


@lru_cache(maxsize=1024)
def find_zone(name: str) -> tzinfo | None:
    """The zone of that IANA name, if it is known here."""
    if not 0 < len(name) <= _LONGEST_NAME:
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown; not a relative path; a folder of zones
        return None


def zone_or_utc(name: str) -> tzinfo:
    """For a reader: a name that cannot be used is never an error."""
    return find_zone(name) or UTC
