"""Following a reservation on a real database, also when every hint is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from gpudev.app.reservations.activity import EventFeed, EventHub
from gpudev.bootstrap.foundation import Stores
from gpudev.domain.names import NodeName
from gpudev.domain.plans.turn import Record
from gpudev.domain.reservation import Event, Reservation, clean, end, place
from gpudev.ports.reservations import Claim
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import EventKind, Reason, Status
from tests.support.reservations import NOON, make_reservation, open_test_stores, submit

pytestmark = pytest.mark.anyio


@pytest.fixture
async def stores(database: str) -> AsyncIterator[Stores]:
    async with open_test_stores(database) as opened:
        yield opened


@pytest.fixture
async def asked(stores: Stores) -> Reservation:
    return await submit(stores, make_reservation(await stores.users.upsert("ada")))


async def place_it(stores: Stores, reservation: Reservation) -> None:
    after = place(reservation, (NodeName("t4-0"),), NOON)
    async with stores.admissions.lock("t4") as transaction:
        await transaction.record(
            Record(reservation, after, Event(EventKind.PLACED, fact("words", words="Placed."), NOON))
        )


async def end_it(stores: Stores, reservation: Reservation) -> None:
    claim = await stores.reservations.claim(reservation.id, NOON - NOON)
    assert isinstance(claim, Claim)
    ended = end(claim.reservation, Status.CANCELLED, Reason.CANCELLED_BY_USER, NOON)
    event = Event(EventKind.CANCELLED, fact("words", words="Cancelled."), NOON)
    after = await stores.reservations.record(claim, Record(claim.reservation, ended, event))
    gone = Event(EventKind.CLEANED, fact("words", words="Clean."), NOON)
    await stores.reservations.record(claim, Record(after, clean(after, NOON), gone))


async def test_news_comes_with_the_next_heartbeat_when_every_hint_is_lost(
    stores: Stores, asked: Reservation
) -> None:
    """The hub is not running, as if its connection were deaf."""
    feed = EventFeed(stores.reservations, EventHub(stores.messages.signals), heartbeat_seconds=0.01)
    stream = feed.follow(asked.id, after=0)
    first = await anext(stream)
    assert first is not None
    assert [stored.event.kind for stored in first.events] == [EventKind.SUBMITTED]
    assert await anext(stream) is None, "nothing new: a heartbeat"
    await place_it(stores, asked)
    async for news in stream:
        if news is not None:
            assert [stored.event.kind for stored in news.events] == [EventKind.PLACED]
            break
    await stream.aclose()  # type: ignore[attr-defined]  # it is a generator


async def test_news_comes_at_once_when_the_hub_listens(stores: Stores, asked: Reservation) -> None:
    hub = EventHub(stores.messages.signals)
    listening = asyncio.create_task(hub.run())
    stream = EventFeed(stores.reservations, hub, heartbeat_seconds=60).follow(asked.id, after=1)
    await anext(stream)
    following = asyncio.ensure_future(anext(stream))
    await place_it(stores, asked)
    async with asyncio.timeout(10):
        news = await following
    assert news is not None
    listening.cancel()
    await stream.aclose()  # type: ignore[attr-defined]  # it is a generator


@pytest.mark.parametrize("after", [0, 2, 3])
async def test_the_stream_ends_once_all_is_told_also_for_one_who_has_heard_it(
    stores: Stores, asked: Reservation, after: int
) -> None:
    await end_it(stores, asked)
    stream = EventFeed(stores.reservations, EventHub(stores.messages.signals)).follow(asked.id, after)
    async with asyncio.timeout(10):
        told = [stored.number async for news in stream if news for stored in news.events]
    assert told == list(range(after + 1, 4))
