"""What happens to a reservation: its events, its whole history and then live, and the log of its dev server.

One `EventHub` a process listens for all followers, so that a thousand open streams cost one database
connection, and each wakes only when its own reservation has news.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gpudev.app.identity.key_watch import KeyWatch
from gpudev.domain.errors import NotFound
from gpudev.domain.names import ReservationId
from gpudev.domain.reservation import Reservation
from gpudev.ports.cluster import LogQuery, ServerLogs
from gpudev.ports.queue import Channel, Signals
from gpudev.ports.reservations import JobOutputs, Reservations, StoredEvent


class EventHub:
    """Tells followers in this process that their reservation has news, and those who watch keys of theirs."""

    def __init__(self, signals: Signals, key_watch: KeyWatch | None = None) -> None:
        self._signals = signals
        self._key_watch = key_watch
        self._followers: defaultdict[ReservationId, set[asyncio.Event]] = defaultdict(set)

    async def run(self) -> None:
        async for signal in self._signals.listen(Channel.EVENT, Channel.KEYS):
            if self._key_watch and (signal is None or signal.channel is Channel.KEYS):
                self._key_watch.hear(signal)
            if signal is not None and signal.channel is Channel.KEYS:
                continue
            woken = list(self._followers) if signal is None else [ReservationId(signal.payload)]
            for reservation_id in woken:
                for news in self._followers.get(reservation_id, ()):
                    news.set()

    @contextmanager
    def following(self, reservation_id: ReservationId) -> Iterator[asyncio.Event]:
        news = asyncio.Event()
        self._followers[reservation_id].add(news)
        try:
            yield news
        finally:
            self._followers[reservation_id].discard(news)
            if not self._followers[reservation_id]:
                del self._followers[reservation_id]


@dataclass(frozen=True, slots=True)
class News:
    """New events with the reservation as it is now; no events: its place in the queue may have moved."""

    reservation: Reservation
    events: tuple[StoredEvent, ...]


@dataclass(frozen=True, slots=True)
class EventFeed:
    reservations: Reservations
    hub: EventHub
    heartbeat_seconds: float = 15

    async def follow(self, reservation_id: ReservationId, after: int) -> AsyncGenerator[News | None, None]:
        """News as it happens, until nothing more can come; None when there was none for a while.

        What is told comes from the table, each time: a hint that was lost delays it until the next
        heartbeat, and no longer.
        """
        with self.hub.following(reservation_id) as hint:
            hinted = True
            while True:
                hint.clear()
                events = await self.reservations.list_events(reservation_id, after)
                reservation = await self.reservations.get(reservation_id)
                yield News(reservation, events) if hinted or events else None
                after = events[-1].number if events else after
                if reservation.is_cleaned and await self._has_told_all(reservation_id, after):
                    return
                hinted = await _happens(hint, self.heartbeat_seconds)

    async def read_history(self, reservation: Reservation, after: int) -> News:
        """What has happened until now, and no more."""
        return News(reservation, await self.reservations.list_events(reservation.id, after))

    async def _has_told_all(self, reservation_id: ReservationId, after: int) -> bool:
        """The clean-up may have come between the reading of the events and that of the reservation."""
        return not await self.reservations.list_events(reservation_id, after)


async def _happens(news: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(news.wait(), seconds)
    except TimeoutError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class ServerLog:
    logs: ServerLogs | None
    """None where this process has no way to the servers."""
    job_outputs: JobOutputs

    async def read(self, reservation: Reservation, query: LogQuery) -> AsyncGenerator[bytes, None]:
        """It may take hours: `app.identity.key_watch` ends it with the key."""
        if reservation.is_ended and (output := await self._find_output(reservation, query)) is not None:
            yield output
            return
        if self.logs is None or not reservation.is_placed:
            raise NotFound("log_not_found", reservation=reservation.id, status=reservation.state.status)
        async for chunk in self.logs.read(reservation.id, query):
            yield chunk

    async def _find_output(self, reservation: Reservation, query: LogQuery) -> bytes | None:
        """The end of what its command wrote: that is kept when the server is not."""
        output = await self.job_outputs.find_output(reservation.id)
        if output is None:
            return None
        lines = output.splitlines(keepends=True)
        kept = lines if query.tail is None else lines[max(0, len(lines) - query.tail) :]
        return "".join(kept).encode()
