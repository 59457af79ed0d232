"""The last few lines of a terminal, drawn again in place; what is told goes above them and stays.

Each drawing is one write, so that a reader never sees half of one. Lines are cut or folded to the width. A
window that got narrower has folded the lines that stood there: as many rows as they take now are cleared.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TextIO

from gpudev.cli.output import escape
from gpudev.cli.terminal.lines import Line, fit, paint

_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"

Width = Callable[[], int]


def read_width() -> int:
    return shutil.get_terminal_size().columns


class Canvas:
    def __init__(self, stream: TextIO, width: Width = read_width) -> None:
        self._stream = stream
        self._width = width
        self._drawn: tuple[str, ...] = ()

    def draw(self, lines: Sequence[Line], *, above: Sequence[str] = ()) -> None:
        """These lines instead of the last ones, and above them what stays."""
        width = self._width()
        told = "".join(f"{escape(line)}\n" for line in above)
        rows = [(text, line.look) for line in map(_printable, lines) for text in fit(line, width - 1)]
        shown = "".join(f"{paint(text, look)}\n" for text, look in rows)
        back = self._back(width)
        # Noted first: whoever sees it may press Ctrl-C before the next line of ours.
        self._drawn = tuple(text for text, _ in rows)
        self._write(f"{_HIDE}{back}{told}{shown}")

    def close(self) -> None:
        """Nothing of the drawing is left, and the cursor is there again."""
        self._write(f"{self._back(self._width())}{_SHOW}")
        self._drawn = ()

    def _back(self, width: int) -> str:
        """To the first row of what is drawn, and clear all from there."""
        rows = sum(max(1, math.ceil(len(text) / width)) for text in self._drawn)
        return f"\r\x1b[{rows}A\x1b[J" if rows else ""

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _printable(line: Line) -> Line:
    return replace(line, text=escape(line.text))
