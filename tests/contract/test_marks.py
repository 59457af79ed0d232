"""Marks stand for reservations exactly as they are, and the total beside them is exact."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from gpudev.bootstrap.foundation import Stores
from gpudev.domain.errors import Conflict
from gpudev.domain.names import NodeName, OperationId
from gpudev.domain.plans.turn import Record
from gpudev.domain.queue import QueuePlace
from gpudev.domain.reservation import Event, Reservation, place, queue
from gpudev.ports.reservations import ListQuery, Mark, MarkedPage
from gpudev.ports.users import NewKey, ShownKey, User
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import EventKind, OperationKind, Reason
from tests.support.reservations import NOON, make_reservation, submit

pytestmark = pytest.mark.anyio

LEASE = timedelta(seconds=30)
OPERATION = OperationId("11111111-1111-4111-8111-111111111111")


@pytest.fixture
async def key(stores: Stores, user: User) -> ShownKey:
    return await add_key(stores, user)


async def test_marks_are_of_ones_own_newest_first(stores: Stores, user: User, key: ShownKey) -> None:
    times = [NOON + timedelta(minutes=minute) for minute in range(5)]
    mine = [await submit(stores, make_reservation(user, created_at=time)) for time in times]
    stranger = await stores.users.upsert("eve")
    await submit(stores, make_reservation(stranger))
    asked_by, page = await stores.reservations.list_marks_for_key(key, ListQuery(limit=2, offset=1))
    assert (asked_by, page.total) == (user, 5)
    assert await read_ids(stores, page) == [mine[3].id, mine[2].id]
    asked_by, page = await stores.reservations.list_marks_for_key(
        await add_key(stores, stranger), ListQuery(offset=7)
    )
    assert (asked_by, page) == (stranger, MarkedPage((), 1))


@pytest.mark.parametrize("wrong", ["unknown", "expired"])
async def test_a_key_that_is_no_good_gets_no_mark(
    stores: Stores, user: User, key: ShownKey, wrong: str
) -> None:
    await submit(stores, make_reservation(user))
    changed = {"unknown": {"key_hash": b"another"}, "expired": {"at": NOON + timedelta(hours=3)}}[wrong]
    asked = replace(key, **changed)
    assert await stores.reservations.list_marks_for_key(asked, ListQuery()) == (None, MarkedPage((), 0))


async def test_nothing_is_written_without_another_mark(stores: Stores, user: User, key: ShownKey) -> None:
    """Also what bumps no version: where a request stands in the line. Whose turn it is shows nowhere."""
    asked = await submit(stores, make_reservation(user))
    marks = [await read_mark(stores, key)]
    async with stores.admissions.lock("t4") as transaction:
        assert await transaction.record(queueing(asked))
    marks.append(await read_mark(stores, key))
    async with stores.admissions.lock("t4") as transaction:
        where = QueuePlace(asked.id, 2, NOON, Reason.WAITING_IN_LINE, fact("words", words="Wait."))
        await transaction.set_queue_places([where], NOON)
    marks.append(await read_mark(stores, key))
    claim = await stores.reservations.claim(asked.id, LEASE)
    assert claim is not None
    assert await read_mark(stores, key) == marks[-1]
    await stores.reservations.record(claim, placing(claim.reservation))
    marks.append(await read_mark(stores, key))
    await stores.operations.request(OPERATION, asked, OperationKind.CANCEL, NOON)
    marks.append(await read_mark(stores, key))
    assert len(set(marks)) == len(marks)
    assert await read_mark(stores, key) == marks[-1]


async def test_what_was_changed_since_is_found_as_it_is_now(
    stores: Stores, user: User, key: ShownKey
) -> None:
    asked = await submit(stores, make_reservation(user))
    old_mark = await read_mark(stores, key)
    async with stores.admissions.lock("t4") as transaction:
        assert await transaction.record(placing(asked))
    found = await stores.reservations.find_marked([old_mark])
    assert list(found) == [old_mark]
    assert found[old_mark].mark == await read_mark(stores, key)
    assert found[old_mark].reservation.node == "t4-0"


async def test_what_is_gone_is_not_found(stores: Stores, user: User, key: ShownKey) -> None:
    await submit(stores, make_reservation(user))
    mark = await read_mark(stores, key)
    await remove_all(stores)
    assert await stores.reservations.find_marked([mark]) == {}


async def test_the_total_is_exact_whoever_submits_at_once(stores: Stores, user: User, key: ShownKey) -> None:
    """Also where some of it is refused, and where two sessions count in the same row."""
    names = [f"run-{number % 24}" for number in range(32)]
    submits = (submit(stores, make_reservation(user, name=name)) for name in names)
    outcomes = await asyncio.gather(*submits, return_exceptions=True)
    refused = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert len(refused) == 8
    assert all(isinstance(error, Conflict) for error in refused)
    await submit(stores, make_reservation(await stores.users.upsert("eve")))
    assert await read_totals(stores, user, key) == (24, 24, 25)
    await remove_all(stores)
    assert await read_totals(stores, user, key) == (0, 0, 0)


async def read_totals(stores: Stores, user: User, key: ShownKey) -> tuple[int, int, int]:
    """One's own by key and by id, and everybody's."""
    _, marked = await stores.reservations.list_marks_for_key(key, ListQuery())
    own = await stores.reservations.list_page(ListQuery(user.user_id))
    everybodys = await stores.reservations.list_page(ListQuery())
    return marked.total, own.total, everybodys.total


async def read_ids(stores: Stores, page: MarkedPage) -> list[str]:
    found = await stores.reservations.find_marked(page.marks)
    return [found[mark].reservation.id for mark in page.marks]


async def read_mark(stores: Stores, key: ShownKey) -> Mark:
    _, page = await stores.reservations.list_marks_for_key(key, ListQuery())
    [mark] = page.marks
    return mark


async def remove_all(stores: Stores) -> None:
    await stores.database.execute("DELETE FROM reservation_events")
    await stores.database.execute("DELETE FROM reservation_records")
    await stores.database.execute("DELETE FROM reservation_counts")


async def add_key(stores: Stores, user: User) -> ShownKey:
    key_hash = user.username.encode()
    await stores.users.add_key(user.user_id, NewKey(key_hash, "prefix", NOON + timedelta(hours=2)))
    return ShownKey(key_hash, NOON)


def queueing(reservation: Reservation) -> Record:
    after = queue(reservation, Reason.WAITING_IN_LINE, fact("words", words="Wait."))
    return Record(
        reservation,
        after,
        Event(EventKind.QUEUED, fact("words", words="Waiting."), NOON, Reason.WAITING_IN_LINE),
    )


def placing(reservation: Reservation) -> Record:
    after = place(reservation, (NodeName("t4-0"),), NOON)
    return Record(reservation, after, Event(EventKind.PLACED, fact("words", words="Placed."), NOON))


async def test_a_reservation_is_read_only_if_its_mark_is_not_the_known_one(
    stores: Stores, user: User, key: ShownKey
) -> None:
    asked = await submit(stores, make_reservation(user))
    caller, mark, found = await stores.reservations.find_for_key(key, asked.id, None)
    assert (caller, found) == (user, asked)
    assert await stores.reservations.find_for_key(key, asked.id, mark) == (user, mark, None)
    await stores.operations.request(OPERATION, asked, OperationKind.CANCEL, NOON)
    _, another, changed = await stores.reservations.find_for_key(key, asked.id, mark)
    assert another != mark
    assert changed is not None


async def test_somebody_elses_has_no_mark(stores: Stores, user: User, key: ShownKey) -> None:
    stranger = await stores.users.upsert("eve")
    theirs = await submit(stores, make_reservation(stranger))
    assert await stores.reservations.find_for_key(key, theirs.id, None) == (user, None, None)
    unknown = replace(key, key_hash=b"another")
    assert await stores.reservations.find_for_key(unknown, theirs.id, None) == (None, None, None)
