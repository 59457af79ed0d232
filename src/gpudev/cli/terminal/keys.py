"""Keys as they are pressed: what a terminal sends for each, and the mode that lets single ones through.

Ctrl-C is not among them: it stays a signal, and reaches the program as KeyboardInterrupt.
"""

from __future__ import annotations

import os
import re
import select
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum


class Key(StrEnum):
    UP = "up"
    DOWN = "down"
    FIRST = "first"
    LAST = "last"
    MARK = "mark"
    ENTER = "enter"
    ESCAPE = "escape"


_SENT = {
    b"\x1b[A": Key.UP,
    b"\x1bOA": Key.UP,
    b"k": Key.UP,
    b"\x10": Key.UP,
    b"\x1b[B": Key.DOWN,
    b"\x1bOB": Key.DOWN,
    b"j": Key.DOWN,
    b"\x0e": Key.DOWN,
    b"\t": Key.DOWN,
    b"\x1b[H": Key.FIRST,
    b"\x1bOH": Key.FIRST,
    b"\x1b[1~": Key.FIRST,
    b"g": Key.FIRST,
    b"\x1b[F": Key.LAST,
    b"\x1bOF": Key.LAST,
    b"\x1b[4~": Key.LAST,
    b"G": Key.LAST,
    b" ": Key.MARK,
    b"\r": Key.ENTER,
    b"\n": Key.ENTER,
    b"\x1b": Key.ESCAPE,
    b"q": Key.ESCAPE,
    b"\x04": Key.ESCAPE,
}
_PRESSED = re.compile(rb"\x1b\[[0-9;]*[ -/]*[@-~]|\x1bO[@-~]|[\x00-\xff]")
_UNFINISHED = re.compile(rb"\x1b(\[[0-9;]*|O)?\Z")
_REST_SECONDS = 0.05
"""How long the rest of a sequence may take; an Escape alone is one that nothing follows."""
_READ_BYTES = 64


def parse_keys(sent: bytes) -> tuple[Key, ...]:
    """The keys that these bytes stand for; what means nothing here is left out."""
    pressed = (_SENT.get(match.group()) for match in _PRESSED.finditer(sent))
    return tuple(key for key in pressed if key is not None)


@contextmanager
def reading_keys(terminal: int) -> Iterator[Callable[[], tuple[Key, ...]]]:
    """Let single keys through, unseen; the terminal is left as it was found."""
    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal)
        yield lambda: _read_keys(terminal)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _read_keys(terminal: int) -> tuple[Key, ...]:
    """Wait for the next keys. A terminal that is gone is one where Escape was pressed."""
    sent = os.read(terminal, _READ_BYTES)
    if not sent:
        return (Key.ESCAPE,)
    while _UNFINISHED.search(sent) and select.select([terminal], [], [], _REST_SECONDS)[0]:
        sent += os.read(terminal, _READ_BYTES)
    return parse_keys(sent)
