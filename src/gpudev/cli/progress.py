"""Showing what happens while one waits: lines that move on a terminal, plain lines elsewhere."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from gpudev.cli.output import say
from gpudev.cli.render.progress import Picture, format_picture
from gpudev.cli.terminal.canvas import Canvas

_TICK_SECONDS = 0.1


class Progress(Protocol):
    def tell(self, line: str) -> None:
        """Something happened; it stays to be read."""
        ...

    def show(self, picture: Picture) -> None:
        """How things stand at the moment; the next one takes its place."""
        ...


class PlainProgress:
    """Lines on stderr; one that says the same as the last is left out."""

    def __init__(self) -> None:
        self._last = ""

    def tell(self, line: str) -> None:
        self._say(line)

    def show(self, picture: Picture) -> None:
        if picture.plain:
            self._say(picture.plain)

    def _say(self, line: str) -> None:
        if line != self._last:
            say(line)
            self._last = line


class LiveProgress:
    """The present state with its seconds running, and above it what has happened.

    All drawing is done by a thread, at each tick and whenever there is news: the one that waits for the
    server has no time for it, and Ctrl-C, which ends its waiting anywhere, never ends half a drawing. It
    also finds out by itself that the window has another size.
    """

    def __init__(self, canvas: Canvas) -> None:
        self._canvas = canvas
        self._picture = Picture("Waiting")
        self._since = time.monotonic()
        self._told: list[str] = []
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._is_over = False
        self._drawer = threading.Thread(target=self._draw_until_over, daemon=True)

    def start(self) -> None:
        self._drawer.start()

    def stop(self) -> None:
        self._is_over = True
        self._news.set()
        self._drawer.join()

    def tell(self, line: str) -> None:
        """Drawn together with what comes next, so that the old picture is not seen below the news."""
        with self._lock:
            self._told.append(line)

    def show(self, picture: Picture) -> None:
        with self._lock:
            if picture.title != self._picture.title:
                self._since = time.monotonic()
            self._picture = picture
        self._news.set()

    def _draw_until_over(self) -> None:
        for frame in itertools.count():
            self._news.wait(_TICK_SECONDS)
            self._news.clear()
            is_over = self._is_over
            self._draw(frame)
            if is_over:
                self._canvas.close()
                return

    def _draw(self, frame: int) -> None:
        with self._lock:
            told, self._told = self._told, []
            picture, seconds = self._picture, time.monotonic() - self._since
        self._canvas.draw(format_picture(picture, seconds, frame), above=told)


@contextmanager
def open_progress(*, live: bool) -> Iterator[Progress]:
    if not live:
        yield PlainProgress()
        return
    progress = LiveProgress(Canvas(sys.stderr))
    progress.start()
    try:
        yield progress
    finally:
        progress.stop()
