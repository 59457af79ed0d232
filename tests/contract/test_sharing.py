"""What a store counts of the use of GPUs, and that quotas hold however many ask at once."""

from __future__ import annotations

import asyncio
import uuid
from datetime import datetime, timedelta

import pytest

from gpudev.bootstrap.foundation import Stores
from gpudev.domain.disk import DiskId
from gpudev.domain.errors import Conflict, QuotaExceeded
from gpudev.domain.plans.turn import Record
from gpudev.domain.policy import FairShare, weigh_use
from gpudev.domain.queue import Submission
from gpudev.domain.quota import DEFAULT_QUOTA, Quota, Use
from gpudev.domain.reservation import Event, Reservation, end
from gpudev.ports.reservations import HomeWish
from gpudev.ports.users import User
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import EventKind, Reason, Status
from tests.support.active import make_active
from tests.support.reservations import NOON, make_reservation, submit

pytestmark = pytest.mark.anyio

HOUR = timedelta(hours=1)


async def ask(stores: Stores, asked: Reservation, quota: Quota) -> None:
    event = Event(EventKind.SUBMITTED, asked.state.detail, asked.spec.created_at)
    await stores.reservations.submit(asked, event, quota=quota)


async def finish(stores: Stores, running: Reservation, at: datetime) -> None:
    claim = await stores.reservations.claim(running.id, timedelta(seconds=30))
    assert claim is not None
    after = end(claim.reservation, Status.CANCELLED, Reason.CANCELLED_BY_USER, at)
    await stores.reservations.record(
        claim, Record(claim.reservation, after, Event(EventKind.CANCELLED, fact("words", words=""), at))
    )


async def test_quota_counts_those_that_wait_of_this_user_and_type(stores: Stores, user: User) -> None:
    other = await stores.users.upsert("bob")
    await submit(stores, make_reservation(other))
    await submit(stores, make_reservation(user, gpu_type="a100"))
    quota = Quota(waiting=2)
    await ask(stores, make_reservation(user), quota)
    await ask(stores, make_reservation(user), quota)
    with pytest.raises(QuotaExceeded, match="2 of your requests wait"):
        await ask(stores, make_reservation(user), quota)


async def test_repeat_is_not_counted(stores: Stores, user: User) -> None:
    once = make_reservation(user)
    await ask(stores, once, Quota(waiting=1))
    with pytest.raises(Conflict):
        await ask(stores, once, Quota(waiting=1))


async def test_however_many_ask_at_once_no_more_than_the_quota_get_through(
    stores: Stores, user: User
) -> None:
    asked = [ask(stores, make_reservation(user), Quota(waiting=3)) for _ in range(8)]
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes if outcome is not None] == [QuotaExceeded] * 5


async def test_hours_are_those_used_in_the_period_and_those_reserved(stores: Stores, user: User) -> None:
    over = await make_active(stores, user, now=NOON - 30 * HOUR, gpu_count=1, expires_at=NOON - 20 * HOUR)
    await finish(stores, over, NOON - 22 * HOUR)
    await make_active(stores, user, now=NOON - HOUR, expires_at=NOON + HOUR)
    await submit(stores, make_reservation(user, gpu_count=4, duration=HOUR))
    asked = make_reservation(user, duration=HOUR)
    # Two of eight hours are within the last day, two are those of the running one, four wait.
    with pytest.raises(QuotaExceeded, match=r"8\.0 of your 8\.9"):
        await ask(stores, asked, Quota(gpu_hours=8.9, period=24 * HOUR))
    await ask(stores, asked, Quota(gpu_hours=9, period=24 * HOUR))


@pytest.mark.threat("submits at the same moment exceed a quota")
async def test_twenty_at_once_reserve_no_more_hours_than_the_quota(stores: Stores, user: User) -> None:
    quota = Quota(reserved_gpu_hours=11)
    asked = [ask(stores, make_reservation(user, duration=2 * HOUR), quota) for _ in range(20)]
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes if outcome is not None] == [QuotaExceeded] * 15


async def test_reserved_hours_are_those_that_wait_and_what_running_ones_have_left(
    stores: Stores, user: User
) -> None:
    over = await make_active(stores, user, now=NOON - 3 * HOUR, expires_at=NOON + HOUR)
    await finish(stores, over, NOON - HOUR)
    await make_active(stores, user, now=NOON - HOUR, expires_at=NOON + 3 * HOUR)
    await submit(stores, make_reservation(user, gpu_count=4, duration=HOUR))
    with pytest.raises(QuotaExceeded, match=r"7\.0 of your 7\.9 are reserved"):
        await ask(stores, make_reservation(user, duration=HOUR), Quota(reserved_gpu_hours=7.9))
    await ask(stores, make_reservation(user, duration=HOUR), Quota(reserved_gpu_hours=8))


async def test_use_is_read_for_every_type_that_is_asked_about(stores: Stores, user: User) -> None:
    other = await stores.users.upsert("bob")
    await submit(stores, make_reservation(other, gpu_type="a100"))
    await make_active(stores, user, now=NOON - HOUR, expires_at=NOON + 2 * HOUR)
    await make_active(stores, user, now=NOON, expires_at=NOON + 5 * HOUR)
    await submit(stores, make_reservation(user, duration=3 * HOUR))
    since = {"t4": NOON - DEFAULT_QUOTA.period, "a100": NOON - HOUR}
    assert await stores.reservations.read_use(user.user_id, since, NOON) == {
        "t4": Use(gpus=2, waiting=1, reserved_gpu_hours=10, gpu_hours=11, long_gpus=1),
        "a100": Use(),
    }


async def test_use_is_weighed_as_the_domain_says(stores: Stores, user: User) -> None:
    bob = await stores.users.upsert("bob")
    fair = FairShare(6 * HOUR)
    over = await make_active(stores, user, now=NOON - 9 * HOUR)
    await finish(stores, over, NOON - 5 * HOUR)
    await make_active(stores, user, now=NOON - 2 * HOUR)
    ancient = await make_active(stores, bob, now=NOON - 100 * HOUR)
    await finish(stores, ancient, NOON - 99 * HOUR)
    expected = weigh_use(1, NOON - 9 * HOUR, NOON - 5 * HOUR, NOON, fair.half_life)
    expected += weigh_use(1, NOON - 2 * HOUR, NOON, NOON, fair.half_life)
    assert await stores.admissions.read_use("t4", fair, NOON) == {user.user_id: pytest.approx(expected)}
    async with stores.admissions.lock("t4") as transaction:
        assert await transaction.read_use(fair, NOON) == {user.user_id: pytest.approx(expected)}


async def test_what_was_asked_for_can_be_replayed(stores: Stores, user: User) -> None:
    early = await make_active(stores, user, now=NOON, expires_at=NOON + 3 * HOUR)
    await finish(stores, early, NOON + 2 * HOUR)
    gave_up = await submit(stores, make_reservation(user, gpu_count=2, created_at=NOON + HOUR))
    await finish(stores, gave_up, NOON + 4 * HOUR)
    await submit(stores, make_reservation(user))
    name = f"user-{user.user_id}"
    assert await stores.admissions.list_submissions("t4", NOON) == (
        Submission(NOON, name, 1, HOUR, used=2 * HOUR, extends=2 * HOUR),
        Submission(NOON + HOUR, name, 2, HOUR, gives_up=3 * HOUR),
    )
    assert await stores.admissions.list_submissions("t4", NOON + 2 * HOUR) == ()


async def test_labels_are_kept(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user, node_labels={"nsight": "true"}))
    assert asked.spec.node_labels == {"nsight": "true"}


async def test_outlook_knows_whose_disk_is_not_free(stores: Stores, user: User) -> None:
    wish = HomeWish("work", DiskId(str(uuid.uuid4())))
    asked = await submit(stores, make_reservation(user), wish)
    assert (await stores.admissions.read_outlook("t4", NOON)).disk_busy == frozenset()
    await stores.database.execute("UPDATE disks SET state = 'snapshotting'")
    assert (await stores.admissions.read_outlook("t4", NOON)).disk_busy == {asked.id}
