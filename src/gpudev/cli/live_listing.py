"""`--watch`: a listing that is looked at again and again, until Ctrl-C.

On a terminal it has the screen for itself, is drawn anew when it or the window changes, and what was seen
last stays when it ends. Elsewhere each change is printed as it comes. A server that does not answer is not
the end: it is said, and asked again.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import NoReturn

from gpudev.cli.output import escape, put, say
from gpudev.cli.render.times import format_moment, read_now
from gpudev.cli.terminal.lines import cut
from gpudev.client.config import Surroundings
from gpudev.client.errors import Unreachable

EVERY_SECONDS = 2.0
_TICK_SECONDS = 0.1
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _CLEAR_LINE, _CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"

Listing = Callable[[], str]
"""Asks the server, and writes what it says for the width that the terminal has at the moment."""


def watch(listing: Listing, surroundings: Surroundings) -> NoReturn:
    if sys.stdout.isatty() and not surroundings.wants_plain_output:
        _Screen(listing).run()
    _print_changes(listing)


def _print_changes(listing: Listing) -> NoReturn:
    shown = trouble = ""
    while True:
        try:
            latest = listing()
        except Unreachable as error:
            if error.message != trouble:
                say(error.message)
            trouble = error.message
        else:
            if latest != shown:
                put(latest)
                sys.stdout.flush()
            shown, trouble = latest, ""
        time.sleep(EVERY_SECONDS)


class _Screen:
    """The whole terminal, given back as it was."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._text = ""
        self._trouble = ""

    def run(self) -> NoReturn:
        self._look()
        sys.stdout.write(_ENTER)
        try:
            while True:
                self._draw()
                self._wait()
                self._look()
        finally:
            sys.stdout.write(_LEAVE)
            sys.stdout.write(f"{self._text}\n")
            sys.stdout.flush()

    def _look(self) -> None:
        try:
            self._text, self._trouble = escape(self._listing()), ""
        except Unreachable as error:
            if not self._text:
                raise
            self._trouble = self._trouble or escape(
                f"Since {format_moment(read_now().at, read_now())}: {error.message}"
            )

    def _wait(self) -> None:
        """Until it is time to look again; at once if the window has another size."""
        size = shutil.get_terminal_size()
        end = time.monotonic() + EVERY_SECONDS
        while time.monotonic() < end and shutil.get_terminal_size() == size:
            time.sleep(_TICK_SECONDS)

    def _draw(self) -> None:
        width, height = shutil.get_terminal_size()
        lines = [*self._text.splitlines(), "", self._trouble or "Ctrl-C to leave."]
        if len(lines) > height:
            lines = [*lines[: height - 1], f"{len(lines) - height + 1} more lines"]
        body = "\r\n".join(f"{cut(line, width)}{_CLEAR_LINE}" for line in lines)
        sys.stdout.write(f"{_HOME}{body}{_CLEAR_BELOW}")
        sys.stdout.flush()
