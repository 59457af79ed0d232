"""The time zone of the reader: sentences for a person have their times in it."""

from __future__ import annotations

from datetime import tzinfo
from typing import Annotated

from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from gpudev.texts.zones import zone_or_utc
from gpudev.wire.versions import TIME_ZONE_HEADER


def zone_of(request: HTTPConnection) -> tzinfo:
    """The zone that the client named; UTC if it named none that is known here."""
    return zone_or_utc(request.headers.get(TIME_ZONE_HEADER, ""))


async def _zone(request: Request) -> tzinfo:
    return zone_of(request)


Zone = Annotated[tzinfo, Depends(_zone)]
