"""What the use of reservations adds up to, on real PostgreSQL."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from gpudev.bootstrap.foundation import Stores
from gpudev.domain.idle import Signal, Usage
from gpudev.domain.names import NodeName
from gpudev.domain.plans.turn import Record
from gpudev.domain.reservation import Event, Reservation, activate, end, place
from gpudev.domain.server import Member, SshAddress
from gpudev.ports.reports import ReportKey, Sample, UsageReport, UsageSum
from gpudev.ports.users import User
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import EventKind, Reason, Status
from tests.support.reservations import NOON, make_reservation, submit

pytestmark = pytest.mark.anyio

HOUR = timedelta(hours=1)
PRICES = {"h100": 4.0}


async def run(
    stores: Stores,
    user: User,
    begin: datetime,
    hours: float,
    *,
    ended: datetime | None = None,
    **changes: object,
) -> Reservation:
    """One that waited half an hour, ran from `begin`, and was asked for so many hours."""
    asked = make_reservation(user, created_at=begin - HOUR / 2, duration=hours * HOUR, **changes)
    row = await submit(stores, asked)
    claim = await stores.reservations.claim(row.id, HOUR)
    assert claim is not None

    async def record(after: Reservation, kind: EventKind, at: datetime) -> Reservation:
        return await stores.reservations.record(claim, Record(row, after, Event(kind, "", at)))

    row = await record(place(row, (NodeName("n"),), begin), EventKind.PLACED, begin)
    row = await record(
        activate(row, (Member(NodeName("n"), SshAddress("h", 1)),), begin), EventKind.ACTIVE, begin
    )
    if ended is not None:
        status, reason = Status.CANCELLED, Reason.CANCELLED_BY_USER
        row = await record(end(row, status, reason, ended), EventKind.CANCELLED, ended)
    return row


async def report(stores: Stores, by: ReportKey, begin: datetime, end: datetime) -> dict[str, UsageSum]:
    sums = await stores.reports.sum_usage(UsageReport(begin, end, by), PRICES, NOON + 24 * HOUR)
    return {one.key: one for one in sums}


async def test_hours_are_cut_at_the_span_and_at_midnight(stores: Stores, user: User) -> None:
    await run(stores, user, NOON, 24, gpu_type="h100", gpu_count=8)
    days = await report(stores, ReportKey.DAY, NOON - 24 * HOUR, NOON + 14 * HOUR)
    assert {key: one.gpu_hours for key, one in days.items()} == {"2026-03-01": 96, "2026-03-02": 16}
    assert {key: one.mean_wait_minutes for key, one in days.items()} == {"2026-03-01": 30, "2026-03-02": None}
    [by_type] = (await report(stores, ReportKey.TYPE, NOON + HOUR, NOON + 2 * HOUR)).values()
    assert (by_type.key, by_type.gpu_hours, by_type.cost) == ("h100", 8, 32)


async def test_users_are_told_apart_with_early_releases_and_unknown_prices(
    stores: Stores, user: User
) -> None:
    other = await stores.users.upsert("grace")
    await run(stores, user, NOON, 4, ended=NOON + HOUR, gpu_type="t4", gpu_count=2)
    await run(stores, user, NOON, 4, ended=NOON + 4 * HOUR, gpu_type="h100")
    await run(stores, other, NOON, 2, gpu_type="cpu-x86", gpu_count=0)
    users = await report(stores, ReportKey.USER, NOON - HOUR, NOON + 9 * HOUR)
    assert (users["ada"].reservations, users["ada"].gpu_hours, users["ada"].early_releases) == (2, 6, 1)
    assert (users["ada"].cost, users["grace"].cost) == (16, None)
    assert users["grace"].gpu_hours == 9


async def test_idle_share_is_weighed_by_the_time_it_was_measured_for(stores: Stores, user: User) -> None:
    idle = await run(stores, user, NOON, 4, ended=NOON + 2 * HOUR)
    await run(stores, user, NOON, 4, ended=NOON + 2 * HOUR)
    for minutes in range(4):
        at = NOON + minutes * timedelta(minutes=1)
        since = at if minutes else None
        sample = Sample(idle.id, Usage(at, {Signal.GPU_USE: 0.0}), since, fact("words", words="idle"))
        await stores.reports.add_samples([sample])
        await stores.reports.add_samples([replace(sample, signals=fact("words", words="again"))])
    [ada] = (await report(stores, ReportKey.USER, NOON, NOON + 3 * HOUR)).values()
    assert ada.idle_share == 0.75


async def test_what_did_not_run_in_the_span_is_not_there(stores: Stores, user: User) -> None:
    await run(stores, user, NOON, 4, ended=NOON + HOUR)
    await submit(stores, make_reservation(user))
    assert await report(stores, ReportKey.USER, NOON + HOUR, NOON + 2 * HOUR) == {}
    assert await report(stores, ReportKey.USER, NOON - 2 * HOUR, NOON) == {}
