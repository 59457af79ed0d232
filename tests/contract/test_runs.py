"""Reservations that are stopped and requested again, on real PostgreSQL."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

import pytest

from gpudev.bootstrap.foundation import Stores
from gpudev.domain.disk import DiskId, DiskOperation, soft_delete
from gpudev.domain.errors import Conflict, QuotaExceeded, Stale
from gpudev.domain.idle import Signal, Usage
from gpudev.domain.names import NodeName, OperationId
from gpudev.domain.operations import Size, release, resume, stop
from gpudev.domain.plans.disk_turn import RecordDisk
from gpudev.domain.plans.turn import Record
from gpudev.domain.quota import Quota
from gpudev.domain.reservation import Activity, Event, Reservation, activate, end, place
from gpudev.domain.server import Member, SshAddress
from gpudev.ports.reports import ReportKey, Sample, UsageReport
from gpudev.ports.reservations import HomeWish, ListQuery
from gpudev.ports.users import User
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import DiskOperationKind, EventKind, Reason, Status
from tests.support.parts import change
from tests.support.reservations import NOON, make_reservation, submit

pytestmark = pytest.mark.anyio

HOUR = timedelta(hours=1)
MEMBER = Member(NodeName("t4-0"), SshAddress("h", 1))
TOLD = fact("words", words="")
HOME = HomeWish("work", DiskId("00000000-0000-4000-8000-000000000001"), 100)


def placing(request: Reservation) -> Record:
    return Record(request, place(request, (MEMBER.node,), NOON), Event(EventKind.PLACED, TOLD, NOON))


async def write(stores: Stores, after: Reservation, at: datetime, kind: EventKind) -> Reservation:
    claim = await stores.reservations.claim(after.id, HOUR)
    assert claim is not None
    event = Event(kind, TOLD, at)
    written = await stores.reservations.record(claim, Record(claim.reservation, after, event))
    await stores.turns.end(claim.lease, None)
    return written


async def run_and_stop(stores: Stores, asked: Reservation, home: HomeWish | None = None) -> Reservation:
    """Active from noon on, for four hours, and stopped after one."""
    row = await submit(stores, change(asked, duration=4 * HOUR), home)
    row = await write(stores, place(row, (MEMBER.node,), NOON), NOON, EventKind.PLACED)
    row = await write(stores, activate(row, (MEMBER,), NOON), NOON, EventKind.ACTIVE)
    stopped = stop(row, Reason.STOPPED_BY_USER, NOON + HOUR)
    row = await write(stores, stopped, NOON + HOUR, EventKind.STOPPED)
    return await write(stores, release(row), NOON + HOUR, EventKind.RELEASED)


async def start(
    stores: Stores, stopped: Reservation, size: Size, at: datetime, quota: Quota | None = None
) -> Reservation:
    after = resume(stopped, size, at)
    record = Record(stopped, after, Event(EventKind.RESUMED, TOLD, at))
    limits = {} if quota is None else {"quota": quota}
    await stores.reservations.request_again(record, **limits)
    return await stores.reservations.get(stopped.id)


async def test_a_stop_and_a_start_are_read_as_they_were_written(stores: Stores, user: User) -> None:
    stopped = await run_and_stop(stores, make_reservation(user))
    stored = await stores.reservations.get(stopped.id)
    assert stored == change(stopped, last_updated=stored.state.last_updated)
    assert (stopped.spec.duration, stopped.state.used) == (3 * HOUR, HOUR)
    started = await start(stores, stopped, Size("a100", 8), NOON + 5 * HOUR)
    assert (started.state.status, started.spec.gpu_type, started.spec.gpu_count) == (
        Status.PENDING,
        "a100",
        8,
    )
    assert (started.spec.requested_at, started.state.stopped_at) == (NOON + 5 * HOUR, None)
    assert await stores.admissions.list_waiting_types() == ("a100",)


async def test_a_stop_is_kept_although_the_clock_was_set_back(stores: Stores, user: User) -> None:
    row = await submit(stores, make_reservation(user))
    row = await write(stores, place(row, (MEMBER.node,), NOON), NOON, EventKind.PLACED)
    row = await write(stores, activate(row, (MEMBER,), NOON), NOON, EventKind.ACTIVE)
    early = NOON - 2 * HOUR
    await write(stores, stop(row, Reason.STOPPED_BY_USER, early), early, EventKind.STOPPED)
    stored = await stores.reservations.get(row.id)
    assert (stored.state.status, stored.state.stopped_at) == (Status.STOPPED, NOON)


async def test_every_run_is_counted_by_what_it_took(stores: Stores, user: User) -> None:
    stopped = await run_and_stop(stores, make_reservation(user, gpu_count=2))
    begin = NOON + 5 * HOUR
    started = await start(stores, stopped, Size("a100", 8), begin - HOUR / 2)
    row = await write(stores, place(started, (MEMBER.node,), begin), begin, EventKind.PLACED)
    await write(stores, activate(row, (MEMBER,), begin), begin, EventKind.ACTIVE)
    report = UsageReport(NOON - HOUR, NOON + 24 * HOUR, ReportKey.TYPE)
    sums = {one.key: one for one in await stores.reports.sum_usage(report, {}, begin + 2 * HOUR)}
    assert {key: one.gpu_hours for key, one in sums.items()} == {"t4": 2, "a100": 16}
    assert sums["a100"].mean_wait_minutes == 30
    use = await stores.reservations.read_use(user.user_id, {"t4": NOON - HOUR, "a100": NOON}, begin)
    assert (use["t4"].gpu_hours, use["a100"].gpu_hours) == (2, 24)


async def test_it_is_counted_with_the_others_of_its_type(stores: Stores, user: User) -> None:
    stopped = await run_and_stop(stores, make_reservation(user))
    await start(stores, stopped, Size("a100", 1), NOON + 2 * HOUR)
    for gpu_type, total in (("t4", 0), ("a100", 1)):
        page = await stores.reservations.list_page(ListQuery(user.user_id, (), gpu_type, 10, 0))
        assert page.total == total


async def test_a_quota_holds_for_a_start_as_for_a_submit(stores: Stores, user: User) -> None:
    stopped = await run_and_stop(stores, make_reservation(user))
    await submit(stores, make_reservation(user))
    with pytest.raises(QuotaExceeded):
        await start(stores, stopped, Size("t4", 1), NOON + 2 * HOUR, Quota(waiting=1))
    assert (await stores.reservations.get(stopped.id)).state.status is Status.STOPPED


async def test_of_two_starts_one_is_late(stores: Stores, user: User) -> None:
    stopped = await run_and_stop(stores, make_reservation(user))
    await start(stores, stopped, Size("t4", 1), NOON + 2 * HOUR)
    with pytest.raises(Stale):
        await start(stores, stopped, Size("t4", 2), NOON + 2 * HOUR)
    assert (await stores.reservations.get(stopped.id)).spec.gpu_count == 1


async def test_its_name_stays_its_own_and_its_disk_is_for_everybody(stores: Stores, user: User) -> None:
    stopped = await run_and_stop(stores, make_reservation(user, name="train"), HOME)
    with pytest.raises(Conflict) as refused:
        await submit(stores, make_reservation(user, name="train"))
    assert refused.value.code == "name_taken"
    other = await submit(stores, make_reservation(user), HOME)
    assert other.spec.disk_id == stopped.spec.disk_id
    assert (await stores.disks.get(other.spec.disk_id or DiskId(""))).named_by == other.id
    started = await start(stores, stopped, Size("t4", 1), NOON + 2 * HOUR)
    assert started.state.status is Status.PENDING


async def test_while_a_new_request_waits_for_its_disk_it_waits_and_holds_back_nobody(
    stores: Stores, user: User
) -> None:
    stopped = await run_and_stop(stores, make_reservation(user), HOME)
    other = await submit(stores, make_reservation(user, gpu_type="a100"), HOME)
    started = await start(stores, stopped, Size("t4", 1), NOON + 2 * HOUR)
    third = await submit(stores, make_reservation(user))
    async with stores.admissions.lock("t4") as transaction:
        assert await transaction.list_disk_busy() == {started.id}
        assert not await transaction.record(placing(started))
        assert await transaction.record(placing(third))
    async with stores.admissions.lock("a100") as transaction:
        assert await transaction.list_disk_busy() == frozenset()
        assert await transaction.record(placing(other))


async def test_what_ends_while_it_is_stopped_or_waits_has_used_nothing_more(
    stores: Stores, user: User
) -> None:
    stopped = await run_and_stop(stores, make_reservation(user, gpu_count=2))
    late = NOON + 10 * HOUR
    over = end(stopped, Status.CANCELLED, Reason.CANCELLED_BY_USER, late)
    await write(stores, over, late, EventKind.CANCELLED)
    use = await stores.reservations.read_use(user.user_id, {"t4": NOON - 24 * HOUR}, late)
    assert use["t4"].gpu_hours == 2


async def test_what_never_started_has_used_nothing(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user))
    over = end(asked, Status.CANCELLED, Reason.CANCELLED_BY_USER, NOON + HOUR)
    await write(stores, over, NOON + HOUR, EventKind.CANCELLED)
    use = await stores.reservations.read_use(user.user_id, {"t4": NOON - 24 * HOUR}, NOON + HOUR)
    assert use["t4"].gpu_hours == 0


async def test_a_disk_that_goes_at_the_moment_of_a_start_is_not_waited_for(
    stores: Stores, user: User
) -> None:
    stopped = await run_and_stop(stores, make_reservation(user), HOME)
    disk = await stores.disks.get(HOME.disk_id)
    deleting = RecordDisk(disk, soft_delete(disk, NOON), NOON)
    operation = DiskOperation(OperationId(str(uuid.uuid4())), DiskOperationKind.DELETE, NOON)
    await start(stores, stopped, Size("t4", 1), NOON + 2 * HOUR)
    with pytest.raises(Stale):
        await stores.disks.request(deleting, operation)


async def test_a_start_after_its_disk_has_gone_is_refused(stores: Stores, user: User) -> None:
    stopped = await run_and_stop(stores, make_reservation(user), HOME)
    disk = await stores.disks.get(HOME.disk_id)
    deleting = RecordDisk(disk, soft_delete(disk, NOON), NOON)
    operation = DiskOperation(OperationId(str(uuid.uuid4())), DiskOperationKind.DELETE, NOON)
    await stores.disks.request(deleting, operation)
    with pytest.raises(Stale):
        await start(stores, stopped, Size("t4", 1), NOON + 2 * HOUR)
    assert (await stores.reservations.get(stopped.id)).state.status is Status.STOPPED


async def test_what_was_measured_of_an_earlier_server_says_nothing_of_the_next(
    stores: Stores, user: User
) -> None:
    """To measure all servers takes a while, and one of them may have gone meanwhile."""
    stopped = await run_and_stop(stores, make_reservation(user))
    late = Sample(stopped.id, Usage(NOON + HOUR, {Signal.GPU_USE: 0.0}), NOON, TOLD)
    await stores.reports.add_samples([late])
    assert (await stores.reservations.get(stopped.id)).activity == Activity()
    begin = NOON + 2 * HOUR
    started = await start(stores, stopped, Size("t4", 1), begin)
    row = await write(stores, place(started, (MEMBER.node,), begin), begin, EventKind.PLACED)
    await write(stores, activate(row, (MEMBER,), begin), begin, EventKind.ACTIVE)
    await stores.reports.add_samples([late])
    assert (await stores.reservations.get(stopped.id)).activity == Activity()
