"""On which line of a TOML file something stands, so that a mistake in it can be found at once.

The parser of the standard library tells lines only of what is not TOML at all. Tables and keys at the
beginning of a line are enough for files that people write by hand; of what is inside a value, the line of the
value is told.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

_TABLE = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"\s*(\"[^\"]*\"|'[^']*'|[A-Za-z0-9_-]+)\s*=")

Path = tuple[str | int, ...]


def find_line(text: str, path: Sequence[str | int]) -> int:
    """The line of the most exact part of the path that stands at the beginning of one; 1 if none does."""
    lines = _list_places(text)
    wanted = tuple(path)
    while wanted and wanted not in lines:
        wanted = wanted[:-1]
    return lines.get(wanted, 1)


def _list_places(text: str) -> dict[Path, int]:
    places: dict[Path, int] = {}
    table: Path = ()
    counts: Counter[str] = Counter()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _TABLE.match(line):
            table = _table_path(header[2], counts, is_list=header[1] == "[[")
            places.setdefault(table, number)
        elif key := _KEY.match(line):
            places.setdefault((*table, key[1].strip("\"'")), number)
    return places


def _table_path(name: str, counts: Counter[str], *, is_list: bool) -> Path:
    parts = tuple(part.strip().strip("\"'") for part in name.split("."))
    if not is_list:
        return parts
    counts[name] += 1
    return (*parts, counts[name] - 1)
