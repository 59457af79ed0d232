"""What the user sits at: a terminal that can be asked and drawn on, or not."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpudev.client.config import Surroundings


def can_ask() -> bool:
    """A person is there to answer. Questions go to stderr, answers come from stdin."""
    from gpudev.client.config import read_surroundings

    return sys.stdin.isatty() and sys.stderr.isatty() and not read_surroundings().is_automated


def can_draw(surroundings: Surroundings) -> bool:
    """Progress may move on the screen; elsewhere it is written as plain lines."""
    return sys.stderr.isatty() and not surroundings.wants_plain_output


def find_width() -> int | None:
    """How wide a table may be; None where nobody looks at it, so that programs read whole lines."""
    return _measure() if sys.stdout.isatty() else None


def find_width_of_errors() -> int | None:
    """The same for what goes to stderr."""
    return _measure() if sys.stderr.isatty() else None


def _measure() -> int:
    import shutil

    return shutil.get_terminal_size().columns
