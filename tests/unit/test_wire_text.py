"""Free text: which characters are hidden, what a request may hold, and how hidden characters are shown."""

from __future__ import annotations

import re
import sys
import unicodedata

import pytest

from gpudev.api.wire_schema import _pattern
from gpudev.wire.text import HIDDEN, Text, escape_hidden, has_hidden, is_hidden

JOINERS = "\u200c\u200d"
HOSTILE = {
    "nul": "a\0b",
    "escape": "\x1b[2J",
    "c1": "\x9b2J",
    "bell": "\a",
    "delete": "\x7f",
    "right-to-left": "\u202egpj.exe",
    "isolate": "\u2066x\u2069",
    "surrogate": "\ud800",
    "line separator": "a\u2028b",
    "zero width": "pay\u200bpal",
    "tag": "\U000e0041",
}
HARMLESS = (
    "",
    "Training, 50 % done",
    "Zoë",
    "訓練",
    "👩\u200d🔬",
    "a\u00a0b",
    "\u0646\u0627\u0645\u0647\u200c\u0647\u0627",
)


def test_hidden_are_the_control_and_format_characters_of_unicode_but_the_joiners() -> None:
    hidden = {chr(code) for first, last in HIDDEN for code in range(first, last + 1)}
    assert all(map(is_hidden, hidden))
    known = {
        character
        for character in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and character not in JOINERS
    }
    assert known <= hidden
    # What this Python does not know yet may be assigned in a later one.
    assert {unicodedata.category(character) for character in hidden - known} <= {"Cn"}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hidden_characters_are_refused_and_shown_escaped(text: str) -> None:
    assert has_hidden(text)
    assert not Text(100).accepts(text)
    assert not Text(100, has_lines=True).accepts(text)
    shown = escape_hidden(text)
    assert not has_hidden(shown)
    assert shown.encode().decode("unicode_escape") == text


@pytest.mark.parametrize("text", HARMLESS, ids=ascii)
def test_what_people_write_is_accepted_and_shown_as_it_is(text: str) -> None:
    assert Text(100).accepts(text)
    assert escape_hidden(text) == text


def test_line_breaks_are_accepted_where_there_may_be_lines() -> None:
    assert Text(100, has_lines=True).accepts("a\n\tb\r\n")
    assert not Text(100).accepts("a\nb")
    assert escape_hidden("a\n\x1bb", "\n") == "a\n\\x1bb"


def test_the_length_is_counted_in_characters() -> None:
    assert Text(3).accepts("äöü")
    assert not Text(3).accepts("äöüß")


@pytest.mark.parametrize("has_lines", [True, False])
def test_the_documented_pattern_says_the_same(*, has_lines: bool) -> None:
    documented = re.compile(_pattern(has_lines=has_lines).replace("$", r"\Z"))
    rule = Text(1, has_lines=has_lines)
    for character in map(chr, range(0x10000)):
        if not 0xD800 <= ord(character) <= 0xDFFF:
            assert bool(documented.match(character)) is rule.accepts(character), ascii(character)
