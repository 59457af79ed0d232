"""Text for a screen: plain tables, fields, and long sentences that go on below.

A table has columns as wide as their widest cell, two blanks between them, no lines. Where a width is given
and the table is wider, the columns that do not fit stand below, further in, so that nothing is lost in a
narrow window.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpudev.wire.text import escape_hidden

_GAP = 2
_INDENT = "    "


def format_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: frozenset[int] = frozenset(),
    width: int | None = None,
) -> str:
    """`right` are the columns whose cells are numbers and stand at the right edge."""
    # A line break in a cell would look like another row.
    lines = [[escape_hidden(cell) for cell in line] for line in (header, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    bands = _split(widths, width)
    return "\n".join(text for line in lines for text in _format_line(line, widths, right, bands))


def format_fields(fields: Sequence[tuple[str, str]]) -> str:
    """One field a line, names at the left, values under each other."""
    width = max(len(name) for name, _ in fields)
    return "\n".join(f"{name.ljust(width)}  {value}" for name, value in fields)


def _split(widths: Sequence[int], width: int | None) -> list[range]:
    """The columns of each line that a row takes; a column that fits nowhere has a line of its own."""
    bands: list[range] = []
    start = 0
    used = -_GAP
    for column, wide in enumerate(widths):
        indent = len(_INDENT) if bands else 0
        if width is not None and column > start and indent + used + _GAP + wide > width:
            bands.append(range(start, column))
            start, used = column, -_GAP
        used += _GAP + wide
    return [*bands, range(start, len(widths))]


def _format_line(
    cells: Sequence[str], widths: Sequence[int], right: frozenset[int], bands: Sequence[range]
) -> list[str]:
    padded = [
        cell.rjust(width) if column in right else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    texts = ["  ".join(padded[column] for column in band).rstrip() for band in bands]
    first, *others = texts
    return [first, *(f"{_INDENT}{text}" for text in others if text)]


_LEAST = 20
"""Columns that are left for the text, however narrow the window is."""


def fold(text: str, width: int | None, label: str = "") -> str:
    """`label` and the text after it, in lines of at most this width; None leaves one line for programs.

    Words are never broken, so that paths and addresses in them can be copied.
    """
    if width is None:
        return f"{label}{text}"
    import textwrap

    wrapper = textwrap.TextWrapper(
        width=max(_LEAST, width),
        subsequent_indent=" " * min(len(label), max(0, width - _LEAST)),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(map(wrapper.fill, f"{label}{text}".split("\n")))
