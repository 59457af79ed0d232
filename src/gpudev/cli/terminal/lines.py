"""A line of a drawing: its text and how it looks. Cut or folded to the width before it is coloured."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from enum import StrEnum

_ELLIPSIS = "…"


class Look(StrEnum):
    """By the numbers that terminals know them by."""

    PLAIN = ""
    STRONG = "1"
    FAINT = "2"
    CHOSEN = "1;36"


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    look: Look = Look.PLAIN
    folds: bool = False
    """Goes on below where the width ends, instead of being cut there."""


def cut(text: str, width: int) -> str:
    """As much as fits, with a sign that something is missing."""
    return text if len(text) <= width else text[: max(0, width - 1)] + _ELLIPSIS


def fit(line: Line, width: int) -> list[str]:
    """The rows that it takes."""
    if not line.folds or len(line.text) <= width:
        return [cut(line.text, width)]
    indent = " " * (len(line.text) - len(line.text.lstrip()))
    rows = textwrap.wrap(line.text.strip(), max(1, width - len(indent)))
    return [cut(f"{indent}{row}", width) for row in rows]


def paint(text: str, look: Look) -> str:
    return f"\x1b[{look}m{text}\x1b[0m" if look and text else text
