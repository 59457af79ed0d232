"""The event stream: its format, and what happens when a connection is lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from gpudev.client import sse
from gpudev.client.errors import TimedOut, Unreachable
from gpudev.wire.jobs import JobEvent
from tests.support.wire_values import an_event, as_sse

SUBMITTED = an_event(1, "submitted", "pending")
QUEUED = an_event(2, "queued", "queued")
MOVED = an_event(2, "position", "queued", queue_position=3)
CANCELLED = an_event(3, "cancelled", "cancelled")
CLEANED = an_event(4, "cleaned", "cancelled")


class Connections:
    """A server that answers each connection with the next of these texts; None is no answer at all."""

    def __init__(self, *texts: str | None) -> None:
        self._texts = iter(texts)
        self.asked_after: list[int] = []

    @contextmanager
    def connect(self, last: int, _silence_seconds: float) -> Iterator[Sequence[str]]:
        self.asked_after.append(last)
        text = next(self._texts)
        if text is None:
            raise Unreachable("gone")
        yield text.split("\n")


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "RECONNECT_PAUSE", 0.0)


def follow(connections: Connections, timeout: float | None = None) -> list[JobEvent | None]:
    return list(sse.follow(connections.connect, sse.Deadline(timeout)))


def test_data_ends_at_an_empty_line_and_comments_are_heartbeats() -> None:
    lines = ["id: 1", "event: x", "data: a", "data:b", "", ": still here", "", "data: unfinished"]
    assert list(sse.parse(lines)) == ["a\nb", None]


def test_the_stream_ends_with_the_last_event() -> None:
    connections = Connections(as_sse(SUBMITTED, CANCELLED, CLEANED))
    assert follow(connections) == [SUBMITTED, CANCELLED, CLEANED]
    assert connections.asked_after == [0]


def test_a_lost_connection_goes_on_after_the_last_event_seen() -> None:
    connections = Connections(as_sse(SUBMITTED, QUEUED), None, as_sse(CANCELLED), as_sse(CLEANED))
    assert follow(connections) == [SUBMITTED, QUEUED, CANCELLED, CLEANED]
    assert connections.asked_after == [0, 2, 2, 3]


def test_an_event_that_comes_twice_is_told_once() -> None:
    connections = Connections(as_sse(SUBMITTED, QUEUED), as_sse(SUBMITTED, QUEUED, CANCELLED, CLEANED))
    assert follow(connections) == [SUBMITTED, QUEUED, CANCELLED, CLEANED]


def test_a_move_in_the_queue_has_no_number_and_is_told() -> None:
    connections = Connections(as_sse(QUEUED, MOVED, MOVED, CANCELLED, CLEANED))
    assert follow(connections) == [QUEUED, MOVED, MOVED, CANCELLED, CLEANED]


def test_heartbeats_are_passed_on() -> None:
    assert follow(Connections(": still here\n\n" + as_sse(CLEANED))) == [None, CLEANED]


def test_a_server_that_stays_away_is_given_up() -> None:
    gone = Connections(None)
    with pytest.raises(Unreachable):
        list(sse.follow(gone.connect, sse.Deadline(None), patience_seconds=0.0))


def test_who_waits_is_told_of_each_loss() -> None:
    losses: list[Unreachable] = []
    connections = Connections(as_sse(SUBMITTED), None, as_sse(CANCELLED, CLEANED))
    told = list(sse.follow(connections.connect, sse.Deadline(None), on_loss=losses.append))
    assert told == [SUBMITTED, CANCELLED, CLEANED]
    assert [str(loss) for loss in losses] == ["gone"]


def test_the_deadline_ends_the_wait() -> None:
    with pytest.raises(TimedOut):
        follow(Connections(as_sse(SUBMITTED)), timeout=0.0)
