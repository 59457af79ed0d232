"""What stands on a dev server, and in which zone its times are told."""

from __future__ import annotations

import pytest

from gpudev.domain.notices import list_notices
from gpudev.texts.vocabulary import Status
from tests.support.domain_values import HOUR, NOW, make_reservation


@pytest.mark.parametrize(
    "zone, end",
    [
        ("", "2030-01-01 13:00:00 UTC"),
        ("Europe/Berlin", "2030-01-01 14:00:00 CET"),
        ("America/New_York", "2030-01-01 08:00:00 EST"),
        ("Nowhere/Land", "2030-01-01 13:00:00 UTC"),
    ],
)
def test_times_are_told_where_the_owner_was_when_asking(zone: str, end: str) -> None:
    warned = make_reservation(status=Status.ACTIVE, expires_at=NOW + HOUR, warned_minutes=30, time_zone=zone)
    [notice] = list_notices(warned)
    assert notice.file_name == "WARN_EXPIRES_IN_30MIN.txt"
    assert f"ends in 30 minutes, at {end}. " in notice.text
