"""Showing what happens while one waits: a line that changes on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from gpudev.cli.output import say

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status


WAITING = "Waiting"


class Progress(Protocol):
    def tell(self, line: str) -> None:
        """Something happened; it stays to be read."""
        ...

    def update(self, line: str) -> None:
        """How things stand at the moment; the next one takes its place."""
        ...


class PlainProgress:
    """Lines on stderr; one that says the same as the last is left out."""

    def __init__(self) -> None:
        self._last = ""

    def tell(self, line: str) -> None:
        self.update(line)

    def update(self, line: str) -> None:
        if line != self._last:
            say(line)
            self._last = line


class LiveProgress:
    """A spinner with the present state, and above it what has happened."""

    def __init__(self, console: Console, status: Status) -> None:
        self._console = console
        self._status = status

    def tell(self, line: str) -> None:
        self._console.print(line)
        self._status.update(WAITING)

    def update(self, line: str) -> None:
        from rich.text import Text

        self._status.update(Text(line))


@contextmanager
def open_progress(*, live: bool) -> Iterator[Progress]:
    if not live:
        yield PlainProgress()
        return
    from rich.console import Console

    console = Console(stderr=True, highlight=False, markup=False)
    with console.status(WAITING) as status:
        yield LiveProgress(console, status)
