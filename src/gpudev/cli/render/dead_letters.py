"""Dead letters in words."""

from __future__ import annotations

from collections.abc import Sequence

from gpudev.cli.render.table import format_table
from gpudev.cli.render.times import Now, format_moment
from gpudev.wire.admin import DeadLetterDetail


def format_dead_letters(letters: Sequence[DeadLetterDetail], now: Now, width: int | None = None) -> str:
    if not letters:
        return "There are no dead letters."
    rows = [
        (letter.letter_id, format_moment(letter.died_at, now), letter.error or "-", letter.message)
        for letter in letters
    ]
    return format_table(("ID", "SINCE", "ERROR", "MESSAGE"), rows, frozenset(), width)
