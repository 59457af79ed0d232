"""What every store of forecasts must do, on real PostgreSQL."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from gpudev.app.figures import ForecastFigures
from gpudev.app.reservations.preview import Preview
from gpudev.bootstrap.foundation import Stores
from gpudev.domain.capacity import NodeRoom
from gpudev.domain.catalogue import DEFAULT_CATALOGUE
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.names import NodeName
from gpudev.domain.plans.turn import Record
from gpudev.domain.queue import (
    ANY_LENGTH,
    MIN_SAMPLES,
    LikelyStart,
    QueuePlace,
    Wait,
    WaitRatios,
    bucket_of,
    learn_habits,
)
from gpudev.domain.reservation import Event, Reservation, place, queue
from gpudev.ports.reservations import User
from gpudev.telemetry import FORECASTS
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import EventKind, Reason
from tests.support.reservations import NOON, make_reservation, submit
from tests.support.simulation import MovableClock

pytestmark = pytest.mark.anyio

HOUR = timedelta(hours=1)
STEP = timedelta(minutes=5)
NODE = NodeName("t4-0")


async def wait_and_start(
    stores: Stores, asked: Reservation, waited: timedelta, likely: LikelyStart | None = None
) -> None:
    """Promised for an hour later, and started after that time."""
    await submit(stores, asked)
    promise = QueuePlace(
        asked.id, 1, NOON + HOUR, Reason.WAITING_IN_LINE, fact("words", words="Later."), (NODE,), likely
    )
    earlier = QueuePlace(
        asked.id, 1, NOON + waited, Reason.WAITING_IN_LINE, fact("words", words="Sooner."), (NODE,), likely
    )
    async with stores.admissions.lock("t4") as transaction:
        after = queue(asked, Reason.WAITING_IN_LINE, fact("words", words="Later."))
        await transaction.record(
            Record(
                asked, after, Event(EventKind.QUEUED, fact("words", words="Wait."), NOON, after.state.reason)
            )
        )
        await transaction.set_queue_places([promise], NOON)
        await transaction.set_queue_places([earlier], NOON)
    waiting = await stores.reservations.get(asked.id)
    at = NOON + waited
    async with stores.admissions.lock("t4") as transaction:
        event = Event(EventKind.PLACED, fact("words", words="Placed."), at)
        assert await transaction.record(Record(waiting, place(waiting, (NODE,), at), event))


async def test_habits_are_learned_from_enough_who_have_started(stores: Stores, user: User) -> None:
    for number in range(MIN_SAMPLES):
        if number == MIN_SAMPLES - 1:
            assert (await stores.admissions.read_outlook("t4", NOON)).habits.ratios == {}
        await wait_and_start(stores, make_reservation(user, gpu_count=2), HOUR * number / MIN_SAMPLES)
    outlook = await stores.admissions.read_outlook("t4", NOON)
    waits = [Wait(2, HOUR, HOUR, HOUR * number / MIN_SAMPLES) for number in range(MIN_SAMPLES)]
    learned = learn_habits(waits).ratios
    assert learned.keys() == {(2, bucket_of(HOUR), 0), (2, bucket_of(HOUR), ANY_LENGTH)}
    for kind, ratios in outlook.habits.ratios.items():
        expected = (learned[kind].low, learned[kind].middle, learned[kind].high)
        assert ratios == WaitRatios(*map(pytest.approx, expected))
        assert ratios == WaitRatios(*map(pytest.approx, (0.055, 0.475, 0.895)))
    assert outlook.habits.ratios.keys() == learned.keys()
    assert (await stores.admissions.read_outlook("t4", NOON + HOUR)).habits.ratios == {}
    assert (await stores.admissions.read_outlook("a100", NOON)).habits.ratios == {}


async def test_the_window_is_kept_with_the_wait(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user))
    likely = LikelyStart(NOON, NOON + HOUR / 2, NOON + HOUR)
    told = QueuePlace(
        asked.id, 1, NOON + HOUR, Reason.WAITING_IN_LINE, fact("words", words="Later."), (NODE,), likely
    )
    async with stores.admissions.lock("t4") as transaction:
        after = queue(asked, Reason.WAITING_IN_LINE, fact("words", words="Later."))
        await transaction.record(
            Record(
                asked, after, Event(EventKind.QUEUED, fact("words", words="Wait."), NOON, after.state.reason)
            )
        )
        await transaction.set_queue_places([told], NOON)
    waiting = await stores.reservations.get(asked.id)
    assert waiting.forecast.likely_start == (NOON, NOON + HOUR)


async def test_accuracy_compares_the_first_forecast_with_what_came(stores: Stores, user: User) -> None:
    def window(first: datetime, last: datetime) -> LikelyStart:
        return LikelyStart(first, first + (last - first) / 2, last)

    assert await stores.admissions.measure_accuracy(NOON, STEP) == ()
    hit, missed = window(NOON, NOON + HOUR), window(NOON, NOON + HOUR / 2)
    await wait_and_start(stores, make_reservation(user), HOUR / 2, hit)
    await wait_and_start(stores, make_reservation(user), 2 * HOUR, missed)
    await wait_and_start(stores, make_reservation(user), HOUR + STEP / 2)
    [measured] = await stores.admissions.measure_accuracy(NOON, STEP)
    assert (measured.gpu_type, measured.started) == ("t4", 3)
    assert measured.promises_kept == pytest.approx(2 / 3)
    assert measured.promise_error == pytest.approx((30 + 60 + 2.5) / 3)
    assert measured.likely_error == pytest.approx((0 + 105) / 2)
    assert measured.bias == pytest.approx(150 / 45)
    assert measured.coverage == pytest.approx(1 / 2)


async def test_an_outlook_has_what_the_plan_follows_from(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user))
    rooms = (NodeRoom(NODE, 4, 1), NodeRoom(NodeName("t4-1"), 4))
    async with stores.admissions.lock("t4") as transaction:
        await transaction.set_rooms(rooms)
        await transaction.set_rooms(rooms)
    outlook = await stores.admissions.read_outlook("t4", NOON)
    assert (outlook.rooms, [row.id for row in outlook.reservations]) == (rooms, [asked.id])
    assert (await stores.admissions.read_outlook("unheard-of", NOON)).rooms == ()


async def test_figures_are_shown_to_prometheus(stores: Stores, user: User) -> None:
    await wait_and_start(
        stores, make_reservation(user), HOUR / 2, LikelyStart(NOON, NOON + HOUR / 2, NOON + HOUR)
    )
    clock = MovableClock(NOON + HOUR)
    preview = Preview(stores.admissions, DEFAULT_CATALOGUE, TimePolicy(), clock)
    await ForecastFigures(preview, stores.health).show()
    figures = {
        sample.labels["figure"]: sample.value
        for metric in FORECASTS.collect()
        for sample in metric.samples
        if sample.labels["gpu_type"] == "t4"
    }
    assert figures == {
        "started": 1,
        "promises_kept": 1,
        "promise_error": 30,
        "likely_error": 0,
        "bias": 1,
        "coverage": 1,
    }
