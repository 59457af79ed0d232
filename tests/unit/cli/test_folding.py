"""Long sentences in a narrow window."""

from __future__ import annotations

from gpudev.cli.render.table import fold

SENTENCE = "They share the network of /a/path-that/is/longer."


def test_a_sentence_goes_on_under_where_it_began() -> None:
    assert fold(SENTENCE, 28, "Note: ").split("\n") == [
        "Note: They share the network",
        "      of",
        "      /a/path-that/is/longer.",
    ]


def test_programs_read_one_line() -> None:
    assert fold(SENTENCE, None, "Note: ") == f"Note: {SENTENCE}"


def test_lines_of_the_text_stay_lines() -> None:
    assert fold("one\ntwo", 80, "Error: ") == "Error: one\ntwo"
