"""The benchmarks' own arithmetic and page; what they measure is nobody's test."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench import __main__ as command
from bench import api_findings
from bench.claim_findings import Claim, Findings
from bench.figures import Figure, milliseconds, percentile, table
from bench.load import Order
from bench.page import Section, describe_conditions, replace_section, write_section

CLAIM = Section("Claim", "python -m bench claim", "It took 5 ms.")
OTHER = Section("Other", "python -m bench other", "It took a day.\n\n### In detail\n\nA whole day.")


@pytest.mark.parametrize(
    "samples,percent,value",
    [
        pytest.param([7.0], 95, 7.0, id="one-sample"),
        pytest.param([3.0, 1.0, 2.0], 50, 2.0, id="the-middle-one"),
        pytest.param([1.0, 2.0, 3.0, 4.0], 50, 2.0, id="the-lower-of-two"),
        pytest.param([float(number) for number in range(1, 51)], 95, 48.0, id="p95-of-50"),
        pytest.param([1.0, 2.0], 100, 2.0, id="the-highest"),
        pytest.param([1.0, 2.0], 0, 1.0, id="the-lowest"),
    ],
)
def test_a_percentile_is_a_measured_value(samples: list[float], percent: float, value: float) -> None:
    assert percentile(samples, percent) == value


@pytest.mark.parametrize(
    "seconds,text", [(0.0042, "4.2"), (0.0421, "42.1"), (0.4213, "421"), (1.5, "1500"), (-0.002, "-2.0")]
)
def test_times_are_shown_in_milliseconds(seconds: float, text: str) -> None:
    assert milliseconds(seconds) == text


def test_a_table_has_a_row_a_figure() -> None:
    assert table("step", [Figure("accepted", [0.002, 0.004, 0.5])]).splitlines() == [
        "| step | p50 | p95 |",
        "|---|---:|---:|",
        "| accepted | 4.0 | 500 |",
    ]


def test_the_overhead_is_that_over_the_neighbour() -> None:
    claims = [Claim(0, 0, 0, 0, 0, first_byte=seconds) for seconds in (0.5, 1.0)]
    assert Findings(claims, by_hand=[0.25, 0.25]).overhead.seconds == [0.25, 0.75]


def test_a_ratio_compares_each_round_with_its_own_floor() -> None:
    found = api_findings.Findings()
    for subject, rates in {"get": (50, 10, 90), "get: one statement": (100, 100, 100)}.items():
        for rate in rates:
            found.add(subject, (1.0, [0.001] * rate))
    assert found.ratios(api_findings.GOALS[0]) == [0.1, 0.5, 0.9]
    assert found.subjects["get"].rate == 50


def test_an_order_is_bytes_for_the_wire() -> None:
    order = Order("here", 80, "POST", "/x", {"A": "1"}, "{}")
    assert order.request() == (
        b"POST /x HTTP/1.1\r\nHost: here:80\r\nA: 1\r\n"
        b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    )


def test_a_new_section_goes_to_the_end() -> None:
    page = replace_section("# Benchmarks\n", CLAIM, "here")
    page = replace_section(page, OTHER, "there")
    assert page == (
        "# Benchmarks\n\n"
        "## Claim\n\n`python -m bench claim`, here.\n\nIt took 5 ms.\n\n"
        "## Other\n\n`python -m bench other`, there.\n\nIt took a day.\n\n### In detail\n\nA whole day.\n"
    )


def test_a_section_replaces_its_older_self_and_nothing_else() -> None:
    before = replace_section(replace_section("# Benchmarks\n", CLAIM, "here"), OTHER, "there")
    faster = Section("Claim", "python -m bench claim", "It took 4 ms.")
    assert replace_section(before, faster, "here") == before.replace("5 ms", "4 ms")
    assert replace_section(before, OTHER, "there") == before


def test_a_page_is_made_where_there_is_none(tmp_path: Path) -> None:
    page = tmp_path / "reference" / "benchmarks.md"
    write_section(CLAIM, "here", page)
    text = page.read_text()
    assert text.startswith("# Benchmarks\n")
    assert "`python -m bench claim`, here.\n" in text
    write_section(CLAIM, "here", page)
    assert page.read_text() == text


def test_the_conditions_say_when_and_on_what() -> None:
    conditions = describe_conditions(datetime(2030, 1, 1, tzinfo=UTC).date())
    for word in ("2030-01-01", "core", platform.release(), platform.python_version(), "load average"):
        assert word in conditions


def test_an_unknown_benchmark_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["nonsense"])
    assert "claim" in capsys.readouterr().err
