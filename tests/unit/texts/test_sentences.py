"""Facts become sentences: times in the reader's zone, durations and counts in words, facts inside facts."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from gpudev.domain.errors import NotFound, Unavailable
from gpudev.texts.fact import Fact, fact, parse_fact
from gpudev.texts.sentences import advise, say
from gpudev.texts.template import Values, fill

AT = datetime(2030, 1, 7, 14, 0, 5, tzinfo=UTC)


def write(template: str, zone: str = "UTC", **data: object) -> str:
    known = fact("case", **data)  # type: ignore[arg-type]
    return fill(template, Values(known.data, ZoneInfo(zone), say))


@pytest.mark.parametrize(
    "template, data, sentence",
    [
        ("Disk {name} is free.", {"name": "a{b}"}, "Disk a{b} is free."),
        ("Until {end:time}.", {"end": AT}, "Until 2030-01-07 14:00 UTC."),
        ("Until {end:second}.", {"end": AT}, "Until 2030-01-07 14:00:05 UTC."),
        ("At {end:clock}.", {"end": AT}, "At 14:00 UTC."),
        ("For {length:duration}.", {"length": timedelta(minutes=90)}, "For 1 hour 30 minutes."),
        ("For {length:duration}.", {"length": timedelta(seconds=59)}, "For less than a minute."),
        ("--hours {length:hours}", {"length": timedelta(hours=26)}, "--hours 26"),
        ("--hours {length:hours}", {"length": timedelta(minutes=59, seconds=59)}, "--hours 0.99"),
        ("--at {start:instant}", {"start": AT}, "--at 2030-01-07T14:00Z"),
        ("Choose {counts:or}.", {"counts": (1, 2, 4)}, "Choose 1, 2 or 4."),
        ("Choose {counts:or}.", {"counts": (8,)}, "Choose 8."),
        ("Choose {counts:or}.", {"counts": ()}, "Choose nothing."),
        ("{n:count node}.", {"n": 1}, "1 node."),
        ("{n:count node}.", {"n": 0}, "0 nodes."),
        ("{id:short}.", {"id": "0123456789"}, "01234567."),
        ("On {nodes}.", {"nodes": ("a", "b")}, "On a, b."),
        ("{x:.2f}.", {"x": 0.333}, "0.33."),
        ("It is over: {why}", {"why": fact("words", words="No {room}.")}, "It is over: No {room}."),
    ],
)
def test_template_is_filled(template: str, data: dict[str, object], sentence: str) -> None:
    assert write(template, **data) == sentence


def test_time_is_shown_in_the_zone_of_the_reader_with_its_name() -> None:
    assert write("Until {end:time}.", "Europe/Berlin", end=AT) == "Until 2030-01-07 15:00 CET."


@pytest.mark.parametrize(
    "at, zone",
    [
        (datetime(9999, 12, 31, 23, 59, tzinfo=UTC), "Asia/Tokyo"),
        (datetime(1, 1, 1, tzinfo=UTC), "America/New_York"),
    ],
    ids=("last", "first"),
)
def test_time_that_the_zone_does_not_have_is_shown_in_utc(at: datetime, zone: str) -> None:
    assert write("{at:clock}", zone, at=at) == f"{at:%H:%M} UTC"


def test_time_to_type_is_in_utc_whoever_reads_it() -> None:
    assert write("--at {end:instant}", "Europe/Berlin", end=AT) == "--at 2030-01-07T14:00Z"


def test_fact_survives_json_unchanged() -> None:
    whole = fact("case", end=AT, length=timedelta(hours=1), nodes=("a",), why=fact("words", words="x"))
    assert parse_fact(json.loads(json.dumps(whole.as_json()))) == whole


def test_fact_of_another_version_is_shown_with_its_data() -> None:
    unknown = Fact("from_the_future", {"node": "a"})
    assert say(unknown) == "from_the_future (node: a)"
    assert advise(unknown) == ""


@pytest.mark.parametrize(
    "stored",
    [
        Fact("extension_too_long", {"reservation": "7f3a91c2"}),
        Fact("extension_too_long", {"reservation": 7, "left": None, "longest": "x"}),
        Fact("ambiguous_reservation", {"text": "a", "count": 2, "candidates": 3}),
        Fact("sentences", {"parts": [{"data": {}}]}),
    ],
    ids=["missing", "other types", "in a function", "inside another"],
)
def test_stored_fact_whose_data_do_not_fit_is_shown_with_its_data(stored: Fact) -> None:
    assert say(stored).startswith(f"{stored.key} (")
    assert isinstance(advise(stored), str)


def test_error_has_the_words_of_its_fact() -> None:
    error = NotFound("words", code="no_such_disk", words="No such disk.")
    assert (str(error), error.message, error.code) == ("No such disk.", "No such disk.", "no_such_disk")
    assert Unavailable("words", retry_after=timedelta(seconds=3), words="x").retry_after == timedelta(
        seconds=3
    )
