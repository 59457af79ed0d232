"""Which zone times are written in, whatever the header says."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gpudev.texts.zones import zone_or_utc

SUMMER = datetime(2030, 7, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("name, hour", [("Europe/Berlin", 14), ("America/New_York", 8), ("UTC", 12)])
def test_a_known_name_is_that_zone(name: str, hour: int) -> None:
    assert SUMMER.astimezone(zone_or_utc(name)).hour == hour


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Europe",
        "Europe/Atlantis",
        "europe berlin",
        "../../etc/passwd",
        "/etc/localtime",
        "Europe//Berlin",
        "Europe/Berlin\0",
        "\xe4\xf6/\xfc",
        "Europe/" + "x" * 300,
        "a/" * 5000,
    ],
)
def test_any_other_name_is_utc(name: str) -> None:
    assert zone_or_utc(name) is UTC
