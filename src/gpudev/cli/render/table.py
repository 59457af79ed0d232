"""A plain table: columns as wide as their widest cell, two blanks between them, no lines."""

from __future__ import annotations

from collections.abc import Sequence


def format_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()
) -> str:
    """`right` are the columns whose cells are numbers and stand at the right edge."""
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(_format_line(line, widths, right) for line in lines)


def format_fields(fields: Sequence[tuple[str, str]]) -> str:
    """One field a line, names at the left, values under each other."""
    width = max(len(name) for name, _ in fields)
    return "\n".join(f"{name.ljust(width)}  {value}" for name, value in fields)


def _format_line(cells: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> str:
    padded = (
        cell.rjust(width) if column in right else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join(padded).rstrip()
