"""Calls that another thread can end: what a cancellation of asyncio becomes in the thread that does the work.

Everything of the client that may take long asks here: pauses are left at once, and what reads a stream or
waits for a program says how it is stopped. A call that nobody can interrupt, which is every call of a plain
script, notices nothing of it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from gpudev.client.errors import Interrupted


class Interruption:
    """May be requested once, from any thread."""

    def __init__(self) -> None:
        self._requested = threading.Event()
        self._lock = threading.Lock()
        self._stops: list[Callable[[], None]] = []

    def request(self) -> None:
        with self._lock:
            self._requested.set()
            stops = tuple(self._stops)
        for stop in stops:
            stop()

    def check(self) -> None:
        if self._requested.is_set():
            raise Interrupted("The call was interrupted.")

    def pause(self, seconds: float) -> None:
        self._requested.wait(seconds)
        self.check()

    @contextlib.contextmanager
    def stopping(self, stop: Callable[[], None]) -> Iterator[None]:
        with self._lock:
            self.check()
            self._stops.append(stop)
        try:
            yield
        finally:
            with self._lock:
                self._stops.remove(stop)


_current: ContextVar[Interruption | None] = ContextVar("interruption", default=None)


@contextlib.contextmanager
def interrupted_by(interruption: Interruption) -> Iterator[None]:
    """What this block calls can be interrupted."""
    token = _current.set(interruption)
    try:
        yield
    finally:
        _current.reset(token)


@contextlib.contextmanager
def stopped_by(stop: Callable[[], None]) -> Iterator[None]:
    """An interruption calls `stop`, in its own thread, while this block runs; `Interrupted` at its end."""
    current = _current.get()
    if current is None:
        yield
        return
    with current.stopping(stop):
        yield
    current.check()


def pause(seconds: float) -> None:
    """Sleep; `Interrupted` as soon as the call is."""
    current = _current.get()
    if current is None:
        time.sleep(seconds)
    else:
        current.pause(seconds)
