"""Server-Sent Events: the stream's lines to events, and a stream that survives its connection."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager

from gpudev.client import codec
from gpudev.client.errors import TimedOut, Unreachable
from gpudev.client.interruption import pause
from gpudev.texts.vocabulary import QUEUE_MOVE, EventKind
from gpudev.wire.jobs import JobEvent

HEARTBEAT_SECONDS = 15.0
SILENCE_SECONDS = 3 * HEARTBEAT_SECONDS
"""A stream without even a heartbeat for so long is taken for dead, and opened again."""
PATIENCE_SECONDS = 60.0
"""How long a lost server is looked for; a restart takes a few seconds."""
RECONNECT_PAUSE = 0.5


class Deadline:
    """A moment on the monotonic clock, or never."""

    def __init__(self, seconds: float | None) -> None:
        self._at = None if seconds is None else time.monotonic() + seconds

    @property
    def is_over(self) -> bool:
        return self._at is not None and time.monotonic() >= self._at

    def at_most(self, seconds: float) -> float:
        """The given time, or what is left if that is less; never quite zero, which sockets misread."""
        return seconds if self._at is None else max(0.01, min(seconds, self._at - time.monotonic()))


Connect = Callable[[int, float], AbstractContextManager[Iterable[str]]]
"""Opens the stream after the event of this number; gives up on a silence of so many seconds."""


Loss = Callable[[Unreachable], None]


def ignore_loss(error: Unreachable) -> None:
    """Who waits need not know that the connection was made anew."""


def follow(
    connect: Connect,
    deadline: Deadline,
    after: int = 0,
    *,
    patience_seconds: float = PATIENCE_SECONDS,
    on_loss: Loss = ignore_loss,
) -> Iterator[JobEvent | None]:
    """Every event after a number, once and in order, then live ones; moves in the queue in between.

    None is a heartbeat: still there, nothing new. Ends after the last event of all. Raises `TimedOut` at
    the deadline, and `Unreachable` when the server stays away for longer than the patience lasts; each time
    that it cannot be reached before that is told to `on_loss`.
    """
    last = after
    patience = Deadline(patience_seconds)
    while True:
        try:
            for event in _read_connection(connect, last, deadline):
                patience = Deadline(patience_seconds)
                if event is None or event.kind == QUEUE_MOVE:
                    yield event
                elif event.number > last:
                    last = event.number
                    yield event
                    if event.kind == EventKind.CLEANED:
                        return
                _check(deadline)
        except Unreachable as error:
            _check(deadline)
            if patience.is_over:
                raise
            on_loss(error)
        _check(deadline)
        pause(deadline.at_most(RECONNECT_PAUSE))


def parse(lines: Iterable[str]) -> Iterator[str | None]:
    """The data of each message as it ends, and None for each comment, which is what heartbeats are.

    Our data says its number and kind itself, so the fields `id` and `event` are not looked at.
    """
    data: list[str] = []
    for line in lines:
        if line.startswith(":"):
            yield None
        elif line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and data:
            yield "\n".join(data)
            data = []


def _read_connection(connect: Connect, last: int, deadline: Deadline) -> Iterator[JobEvent | None]:
    with connect(last, deadline.at_most(SILENCE_SECONDS)) as lines:
        for data in parse(lines):
            yield None if data is None else codec.loads(JobEvent, data)


def _check(deadline: Deadline) -> None:
    if deadline.is_over:
        raise TimedOut("The wait took longer than was allowed.")
