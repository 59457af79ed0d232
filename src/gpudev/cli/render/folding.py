"""Long sentences on a terminal: they go on below, at a word, under where they began."""

from __future__ import annotations

import textwrap

_LEAST = 20
"""Columns that are left for the text, however narrow the window is."""


def fold(text: str, width: int | None, label: str = "") -> str:
    """`label` and the text after it, in lines of at most this width; None leaves one line for programs.

    Words are never broken, so that paths and addresses in them can be copied.
    """
    if width is None:
        return f"{label}{text}"
    wrapper = textwrap.TextWrapper(
        width=max(_LEAST, width),
        subsequent_indent=" " * min(len(label), max(0, width - _LEAST)),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(map(wrapper.fill, f"{label}{text}".split("\n")))
