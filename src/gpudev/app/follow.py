"""Follow what happens to a reservation: its whole history, then live.

One `EventHub` a process listens for all followers, so that a thousand open streams cost one database
connection, and each wakes only when its own reservation has news.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gpudev.domain.names import ReservationId
from gpudev.domain.reservation import EventKind, Reservation
from gpudev.ports.queue import Channel, Signals
from gpudev.ports.store import Reservations, StoredEvent


class EventHub:
    """Tells followers in this process that their reservation has news."""

    def __init__(self, signals: Signals) -> None:
        self._signals = signals
        self._followers: defaultdict[ReservationId, set[asyncio.Event]] = defaultdict(set)

    async def run(self) -> None:
        async for signal in self._signals.listen(Channel.EVENT):
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
class Follow:
    reservations: Reservations
    hub: EventHub
    heartbeat_seconds: float = 15

    async def __call__(self, reservation_id: ReservationId, after: int) -> AsyncIterator[News | None]:
        """News as it happens, until nothing more can come; None when there was none for a while."""
        with self.hub.following(reservation_id) as news:
            while True:
                news.clear()
                events = await self.reservations.list_events(reservation_id, after)
                yield News(await self.reservations.get(reservation_id), events)
                if any(stored.event.kind is EventKind.CLEANED for stored in events):
                    return
                after = events[-1].number if events else after
                while not await _happens(news, self.heartbeat_seconds):
                    yield None


async def _happens(news: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(news.wait(), seconds)
    except TimeoutError:
        return False
    return True
