"""What every store of admissions must do, on real PostgreSQL."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from gpudev.bootstrap.foundation import Stores
from gpudev.domain.errors import Stale
from gpudev.domain.names import NodeName
from gpudev.domain.plans.turn import Record
from gpudev.domain.queue import QueuePlace
from gpudev.domain.reservation import Event, Reservation, clean, end, place, queue
from gpudev.ports.queue import Channel, Signal
from gpudev.ports.users import User
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import EventKind, Reason, Status
from tests.support.reservations import NOON, make_reservation, submit
from tests.support.words import words_of

pytestmark = pytest.mark.anyio


def placing(reservation: Reservation, port_slot: str = "") -> Record:
    after = place(reservation, (NodeName("t4-0"),), NOON, port_slot)
    return Record(reservation, after, Event(EventKind.PLACED, fact("words", words="Placed."), NOON))


def queueing(reservation: Reservation) -> Record:
    after = queue(reservation, Reason.WAITING_IN_LINE, fact("words", words="Wait."))
    return Record(
        reservation,
        after,
        Event(EventKind.QUEUED, fact("words", words="Waiting."), NOON, Reason.WAITING_IN_LINE),
    )


async def test_a_pass_sees_those_who_wait_and_those_who_hold_room_of_its_type(
    stores: Stores, user: User
) -> None:
    waiting = await submit(stores, make_reservation(user))
    placed = await submit(stores, make_reservation(user))
    await submit(stores, make_reservation(user, gpu_type="a100"))
    async with stores.admissions.lock("t4") as transaction:
        assert await transaction.record(placing(placed))
    async with stores.admissions.lock("t4") as transaction:
        rows = {row.id: row.state.status for row in await transaction.read()}
    assert rows == {waiting.id: Status.PENDING, placed.id: Status.PREPARING}
    assert await stores.admissions.list_waiting_types() == ("a100", "t4")


async def test_two_passes_for_one_type_do_not_overlap(stores: Stores) -> None:
    running = 0

    async def one_pass() -> None:
        nonlocal running
        async with stores.admissions.lock("t4") as transaction:
            running += 1
            assert running == 1
            await transaction.read()
            running -= 1

    await asyncio.gather(*(one_pass() for _ in range(8)))


async def test_a_pass_that_fails_leaves_nothing_behind(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user))

    async def failing_pass() -> None:
        async with stores.admissions.lock("t4") as transaction:
            await transaction.record(placing(asked))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await failing_pass()
    assert (await stores.reservations.get(asked.id)).state.status is Status.PENDING
    assert len(await stores.reservations.list_events(asked.id, after=0)) == 1


async def test_a_record_that_comes_too_late_changes_nothing(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user))
    async with stores.admissions.lock("t4") as transaction:
        assert await transaction.record(placing(asked))
        assert not await transaction.record(queueing(asked))
    assert (await stores.reservations.get(asked.id)).state.status is Status.PREPARING


async def test_a_place_in_the_queue_is_kept_without_a_new_version(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user))
    start = NOON + timedelta(hours=1)
    nodes = (NodeName("t4-1"), NodeName("t4-0"))
    told = QueuePlace(asked.id, 3, start, Reason.WAITING_FOR_CAPACITY, fact("words", words="Later."), nodes)
    async with stores.admissions.lock("t4") as transaction:
        await transaction.record(queueing(asked))
        await transaction.set_queue_places([told], NOON)
    stored = await stores.reservations.get(asked.id)
    assert (
        stored.forecast.queue_position,
        stored.forecast.estimated_start_at,
        words_of(stored.state.detail),
    ) == (
        3,
        start,
        "Later.",
    )
    assert (stored.version, stored.forecast.last_queue_update) == (2, NOON)
    assert stored.forecast.planned_nodes == nodes


async def test_a_promise_goes_with_the_wait(stores: Stores, user: User) -> None:
    """Whoever is placed and comes back has none; whoever is told something else while it waits keeps it."""
    asked = await submit(stores, make_reservation(user))
    told = QueuePlace(
        asked.id, 1, NOON, Reason.WAITING_IN_LINE, fact("words", words="Later."), (NodeName("t4-0"),)
    )
    async with stores.admissions.lock("t4") as transaction:
        await transaction.record(queueing(asked))
        await transaction.set_queue_places([told], NOON)
    waiting = await stores.reservations.get(asked.id)
    moved = Record(
        waiting,
        waiting,
        Event(EventKind.REPLANNED, fact("words", words="Later still."), NOON, waiting.state.reason),
    )
    async with stores.admissions.lock("t4") as transaction:
        assert await transaction.record(moved)
    waiting = await stores.reservations.get(asked.id)
    assert (waiting.forecast.estimated_start_at, waiting.forecast.planned_nodes) == (NOON, ("t4-0",))
    async with stores.admissions.lock("t4") as transaction:
        assert await transaction.record(placing(waiting))
    placed = await stores.reservations.get(asked.id)
    assert (placed.forecast.estimated_start_at, placed.forecast.planned_nodes) == (None, ())


async def test_who_is_promised_nothing_has_no_nodes(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user))
    async with stores.admissions.lock("t4") as transaction:
        await transaction.record(queueing(asked))
        await transaction.set_queue_places(
            [QueuePlace(asked.id, 1, None, Reason.NO_NODES, fact("words", words="No."))], NOON
        )
    assert (await stores.reservations.get(asked.id)).forecast.planned_nodes == ()


async def test_a_place_is_not_written_to_one_that_waits_no_more(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user))
    async with stores.admissions.lock("t4") as transaction:
        await transaction.record(placing(asked))
        late = QueuePlace(asked.id, 1, None, Reason.NO_NODES, fact("words", words="Late."))
        await transaction.set_queue_places([late], NOON)
    assert (await stores.reservations.get(asked.id)).forecast.queue_position is None


async def test_signals_are_heard_once_the_writer_has_committed(stores: Stores, user: User) -> None:
    heard = stores.messages.signals.listen(Channel.MESSAGES, Channel.ADMISSION, Channel.TURN, Channel.EVENT)
    assert await anext(heard) is None, "after connecting, everything may have been missed"
    asked = await submit(stores, make_reservation(user))
    submitted = {await anext(heard), await anext(heard)}
    assert submitted == {Signal(Channel.MESSAGES, "gpu_reservations"), Signal(Channel.ADMISSION, "t4")}
    async with stores.admissions.lock("t4") as transaction:
        await transaction.record(placing(asked))
    placed = {await anext(heard), await anext(heard)}
    assert placed == {Signal(Channel.EVENT, asked.id), Signal(Channel.TURN, f"reservation {asked.id}")}
    await heard.aclose()  # type: ignore[attr-defined]  # it is a generator


async def test_a_broken_connection_is_made_again_and_says_so(stores: Stores) -> None:
    heard = stores.messages.signals.listen(Channel.EVENT)
    assert await anext(heard) is None
    await stores.database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE 'LISTEN%'"
    )
    assert await anext(heard) is None
    await heard.aclose()  # type: ignore[attr-defined]  # it is a generator


async def test_a_port_slot_is_given_once_until_its_reservation_is_clean(stores: Stores, user: User) -> None:
    first = await submit(stores, make_reservation(user))
    second = await submit(stores, make_reservation(user, gpu_type="a100"))
    async with stores.admissions.lock("t4") as transaction:
        assert await transaction.list_port_slots() == frozenset()
        assert await transaction.record(placing(first, "slot-1"))
    async with stores.admissions.lock("a100") as transaction:
        assert await transaction.list_port_slots() == {"slot-1"}
        with pytest.raises(Stale):
            await transaction.record(placing(second, "slot-1"))
    await _end_and_clean(stores, first)
    async with stores.admissions.lock("a100") as transaction:
        assert await transaction.list_port_slots() == frozenset()
        assert await transaction.record(placing(second, "slot-1"))
    assert (await stores.reservations.get(second.id)).location.port_slot == "slot-1"


async def _end_and_clean(stores: Stores, reservation: Reservation) -> None:
    claim = await stores.reservations.claim(reservation.id, timedelta(seconds=30))
    assert claim is not None
    why = Reason.CANCELLED_BY_USER
    ended = end(claim.reservation, Status.CANCELLED, why, NOON)
    event = Event(EventKind.CANCELLED, fact("words", words="Over."), NOON, why)
    ended = await stores.reservations.record(claim, Record(claim.reservation, ended, event))
    cleaning = Record(
        ended, clean(ended, NOON), Event(EventKind.CLEANED, fact("words", words="Clean."), NOON, why)
    )
    await stores.reservations.record(claim, cleaning)


async def test_what_is_not_clean_is_unfinished(stores: Stores, user: User) -> None:
    live = await submit(stores, make_reservation(user))
    over = await submit(stores, make_reservation(user))
    await _end_and_clean(stores, over)
    unknown = make_reservation(user)
    assert await stores.reservations.list_unfinished({live.id, over.id, unknown.id}) == {live.id}
