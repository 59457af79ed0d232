"""`gpu-dev server expire --once` as a scheduled job: alone, twice at once, killed, and late.

It runs as a process of its own, without a cluster, on a real database.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest

from tests.support.budgets import choose_depth
from tests.support.reservations import open_test_stores

pytestmark = pytest.mark.anyio

_SEED = """
WITH added AS (
    INSERT INTO reservation_records (
        reservation_id, user_id, name, gpu_type, gpu_count, duration, created_at, status, reason,
        placed_at, launched_at, expires_at, ended_at, cleaned_at, last_updated, event_count)
    SELECT (lpad(to_hex($1::bigint + n), 8, '0') || '-0000-4000-8000-000000000000')::uuid, $3,
           'run-' || ($1 + n), 't4', 1, interval '2 hours', now() - interval '3 hours', $4, $5,
           now() - interval '3 hours', now() - interval '3 hours', now() + $6::interval,
           CASE WHEN $4 = 'expired' THEN now() END, CASE WHEN $4 = 'expired' THEN now() END, now(), 1
    FROM generate_series(1, $2::integer) AS n
    RETURNING reservation_id
), set_up AS (
    INSERT INTO reservation_settings SELECT reservation_id, '', '{}', '{}', '', '' FROM added
)
INSERT INTO reservation_members SELECT reservation_id, 0, 'gone', '127.0.0.1', 1, '{}' FROM added
"""
_TURNS = """
INSERT INTO turns (kind, key, next_turn_at)
SELECT 'reservation', reservation_id, now() + $1::interval FROM reservations
ON CONFLICT (kind, key) DO NOTHING
"""
_EVENTS = """
INSERT INTO reservation_events (reservation_id, number, kind, fact, at, elapsed)
SELECT reservation_id, 1, 'submitted', '{"key": "server_answers"}', created_at, interval '0' FROM reservations
"""


_IS_SERVED = """
SELECT EXISTS (
    SELECT FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend')
"""
_HAS_BEGUN = "SELECT EXISTS (SELECT FROM reservations WHERE event_count > 1)"


class Fleet:
    """Reservations of all kinds, written at once."""

    def __init__(self, connection: asyncpg.Connection, dsn: str, user_id: int) -> None:
        self.connection = connection
        self.dsn = dsn
        self._user_id = user_id
        self._count = 0

    async def add(self, count: int, status: str, *, ends_in: str, turn_in: str | None) -> None:
        reason = "time_is_up" if status == "expired" else None
        ends, turn = _interval(ends_in), _interval(turn_in) if turn_in else None
        await self.connection.execute(_SEED, self._count, count, self._user_id, status, reason, ends)
        await self.connection.execute(_TURNS, turn)
        self._count += count

    async def settle(self) -> None:
        await self.connection.execute(_EVENTS)
        await self.connection.execute("ANALYZE")

    async def end_state(self) -> Counter[tuple[str, int | None, int]]:
        rows = await self.connection.fetch("SELECT status, warned_minutes, event_count FROM reservations")
        return Counter(tuple(row) for row in rows)

    async def transaction_marks(self) -> dict[str, str]:
        rows = await self.connection.fetch("SELECT reservation_id, xmin::text FROM reservation_records")
        return {str(row["reservation_id"]): row["xmin"] for row in rows}


def _interval(text: str) -> timedelta:
    number, unit = text.split()
    return timedelta(**{unit: float(number)})


@pytest.fixture
async def fleet(database: str) -> AsyncIterator[Fleet]:
    async with open_test_stores(database) as stores:
        user = await stores.users.upsert("ada")
    connection = await asyncpg.connect(database)
    try:
        yield Fleet(connection, database, user.user_id)
    finally:
        await connection.close()


def start_job(dsn: str) -> subprocess.Popen[str]:
    program = Path(sys.executable).with_name("gpu-dev")
    environment = {"PATH": os.environ["PATH"], "GPU_DEV_DATABASE_URL": dsn, "GPU_DEV_LOG_LEVEL": "error"}
    command = [program, "server", "expire", "--once"]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


async def finish(job: subprocess.Popen[str]) -> str:
    out, err = await asyncio.to_thread(job.communicate, timeout=300)
    assert job.returncode == 0, err
    return out.strip()


async def make_small(fleet: Fleet) -> None:
    await fleet.add(20, "expired", ends_in="-1 hours", turn_in=None)
    await fleet.add(8, "active", ends_in="-1 hours", turn_in="-1 hours")
    await fleet.add(6, "active", ends_in="0.2 hours", turn_in="-0.1 hours")
    await fleet.add(6, "active", ends_in="2 hours", turn_in="1 hours")
    await fleet.settle()


DONE = Counter(
    {("expired", None, 1): 20, ("expired", None, 2): 8, ("active", 15, 2): 6, ("active", None, 1): 6}
)


async def test_what_is_due_is_ended_and_warned_and_nothing_else_is_touched(fleet: Fleet) -> None:
    await make_small(fleet)
    before = await fleet.transaction_marks()
    assert await finish(start_job(fleet.dsn)) == "done=0 left=14 failed=0"
    assert await fleet.end_state() == DONE
    after = await fleet.transaction_marks()
    assert sum(after[one] != before[one] for one in before) == 14


async def test_two_at_once_come_to_the_same(fleet: Fleet) -> None:
    await make_small(fleet)
    jobs = [start_job(fleet.dsn), start_job(fleet.dsn)]
    for job in jobs:
        await finish(job)
    assert await fleet.end_state() == DONE


async def test_one_that_is_killed_is_finished_by_the_next(fleet: Fleet) -> None:
    await make_small(fleet)
    job = start_job(fleet.dsn)
    async with asyncio.timeout(60):
        while not await fleet.connection.fetchval(_HAS_BEGUN):  # noqa: ASYNC110 - it is another process's doing
            await asyncio.sleep(0.005)
    job.kill()
    await asyncio.to_thread(job.communicate)
    # The server may still be at work on its last statement, and the next job passes over locked rows.
    async with asyncio.timeout(60):
        while await fleet.connection.fetchval(_IS_SERVED):  # noqa: ASYNC110 - it is another process's doing
            await asyncio.sleep(0.005)
    # Its leases run out by themselves, in half a minute.
    await fleet.connection.execute("UPDATE turns SET lease_token = NULL, lease_until = NULL")
    await finish(start_job(fleet.dsn))
    assert await fleet.end_state() == DONE


async def test_a_run_after_five_that_were_missed_sends_only_the_nearest_warning(fleet: Fleet) -> None:
    await fleet.add(3, "active", ends_in="0.05 hours", turn_in="-0.4 hours")
    await fleet.settle()
    for _ in range(2):
        await finish(start_job(fleet.dsn))
    assert await fleet.end_state() == Counter({("active", 5, 2): 3})


@pytest.mark.long
async def test_a_long_past_costs_nothing(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    await fleet.add(choose_depth(long=10_000, soak=100_000), "expired", ends_in="-1 hours", turn_in=None)
    await fleet.add(4_900, "active", ends_in="2 hours", turn_in="1 hours")
    await fleet.add(50, "active", ends_in="-1 hours", turn_in="-1 hours")
    await fleet.add(50, "active", ends_in="0.2 hours", turn_in="-0.1 hours")
    await fleet.settle()
    before = await fleet.transaction_marks()
    statements = await _count_transactions(fleet)
    started = time.perf_counter()
    said = await finish(start_job(fleet.dsn))
    seconds = time.perf_counter() - started
    statements = await _count_transactions(fleet) - statements
    after = await fleet.transaction_marks()
    touched = sum(after[one] != before[one] for one in before)
    with capsys.disabled():
        sys.stdout.write(
            f"\n{said}: {seconds:.2f} s, {statements} transactions, {touched} of {len(before)} rows touched"
        )
    assert touched == 100


async def _count_transactions(fleet: Fleet) -> int:
    query = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
    await fleet.connection.execute("SELECT pg_stat_clear_snapshot()")
    return int(await fleet.connection.fetchval(query))
