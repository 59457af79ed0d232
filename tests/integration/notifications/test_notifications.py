"""From an event in the database to somebody's webhook, which may refuse, fail or hang."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace

import pytest

from gpudev.adapters.webhook import WebhookNotifier, sign
from gpudev.app.controllers.chores import SendNotifications
from gpudev.bootstrap.foundation import Stores
from gpudev.domain.notification import MOST_TRIES, Target
from gpudev.ports.users import User
from gpudev.texts.vocabulary import TargetKind, Topic
from tests.support.active import make_active
from tests.support.receiver import Receiver, running_receiver
from tests.support.reservations import NOON, make_reservation, open_test_stores, submit
from tests.support.simulation import MovableClock

pytestmark = pytest.mark.anyio


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running_receiver() as running:
        yield running


@dataclass(frozen=True, slots=True)
class World:
    stores: Stores
    user: User
    receiver: Receiver
    sending: SendNotifications

    async def want(self, *topics: Topic, kind: TargetKind = TargetKind.WEBHOOK) -> None:
        target = Target(self.user.user_id, kind, self.receiver.url, frozenset(topics), "s3cret")
        await self.stores.notifications.set_target(target)

    async def send_all(self) -> int:
        """Everything that waits, now: pauses are over."""
        await self.stores.database.execute("UPDATE pgmq.q_notifications SET vt = clock_timestamp()")
        return await self.sending.send_due()

    async def count(self) -> int:
        return int(await self.stores.database.fetch_value("SELECT count(*) FROM pgmq.q_notifications"))


@pytest.fixture
async def world(database: str, receiver: Receiver) -> AsyncIterator[World]:
    async with open_test_stores(database) as stores:
        notifier = WebhookNotifier({receiver.host}, MovableClock(), timeout_seconds=2)
        sending = SendNotifications(stores.notifications, notifier)
        yield World(stores, await stores.users.upsert("ada"), receiver, sending)


async def test_events_of_the_chosen_topics_arrive_signed(world: World) -> None:
    await world.want(Topic.STARTS)
    active = await make_active(world.stores, world.user, now=NOON)
    assert await world.send_all() == 3
    [received] = world.receiver.received
    said = json.loads(received.body)
    assert (said["event"], said["reservation_id"], said["username"]) == ("active", active.id, "ada")
    assert said["delivery_id"] == received.headers["x-gpu-dev-delivery"] == f"{active.id}-3"
    expected = sign("s3cret", received.body, int(NOON.timestamp()))
    assert received.headers["x-gpu-dev-signature"] == expected
    assert await world.count() == 0


async def test_slack_gets_a_text_and_no_signature(world: World) -> None:
    await world.want(Topic.QUEUE, Topic.STARTS, kind=TargetKind.SLACK)
    await make_active(world.stores, world.user, now=NOON)
    await world.send_all()
    texts = sorted(json.loads(one.body)["text"] for one in world.receiver.received)
    assert texts == ["gpu-dev: Placed.", "gpu-dev: The dev server answers on SSH."]
    assert not any("x-gpu-dev-signature" in one.headers for one in world.receiver.received)


async def test_who_wants_nothing_costs_nothing(world: World) -> None:
    await submit(world.stores, make_reservation(world.user))
    assert await world.count() == 0
    await world.want(Topic.ENDS)
    await world.stores.notifications.unset_target(world.user.user_id)
    await submit(world.stores, make_reservation(world.user))
    assert await world.count() == 0


@pytest.mark.parametrize("status", [500, 503, 429, 302])
async def test_what_is_not_taken_is_tried_again_and_then_given_up(world: World, status: int) -> None:
    await world.want()
    await world.stores.notifications.send_test(world.user.user_id)
    world.receiver.status = status
    for tries in range(1, MOST_TRIES + 1):
        assert await world.count() == 1
        assert await world.sending.send_due() == (1 if tries == 1 else 0), "not before its pause is over"
        if tries > 1:
            assert await world.send_all() == 1
        assert len(world.receiver.received) == tries
    assert await world.count() == 0
    assert len({one.headers["x-gpu-dev-delivery"] for one in world.receiver.received}) == 1


async def test_what_fails_once_arrives_later(world: World) -> None:
    await world.want()
    await world.stores.notifications.send_test(world.user.user_id)
    world.receiver.status = 500
    await world.send_all()
    world.receiver.status = 204
    await world.send_all()
    assert (len(world.receiver.received), await world.count()) == (2, 0)


async def test_who_says_no_is_not_asked_again(world: World) -> None:
    await world.want()
    await world.stores.notifications.send_test(world.user.user_id)
    world.receiver.status = 410
    await world.send_all()
    assert await world.count() == 0


async def test_one_that_hangs_is_left_and_tried_again(world: World) -> None:
    await world.want()
    await world.stores.notifications.send_test(world.user.user_id)
    world.receiver.hangs = threading.Event()
    sending = replace(
        world.sending, notifier=WebhookNotifier({world.receiver.host}, MovableClock(), timeout_seconds=0.2)
    )
    try:
        await sending.send_due()
    finally:
        world.receiver.hangs.set()
    assert await world.count() == 1
    world.receiver.hangs = None
    await world.send_all()
    assert await world.count() == 0


async def test_a_host_that_is_no_longer_allowed_gets_nothing(world: World) -> None:
    await world.want()
    await world.stores.notifications.send_test(world.user.user_id)
    await replace(world.sending, notifier=WebhookNotifier(set(), MovableClock())).send_due()
    assert world.receiver.received == []
    assert await world.count() == 0
