"""A thousand submits of fifty users at once, and the API is killed in the middle.

The clients repeat with the same key what got no answer. Each request is one reservation, with one event and
one message: none is lost, none is doubled.
"""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gpudev.ports.users import NewKey
from tests.support.api_server import ApiServer, running_api
from tests.support.reservations import PUBLIC_KEY, open_test_stores

pytestmark = pytest.mark.long

USERS = 50
EACH = 20
BODY = {"gpu_type": "t4", "gpu_count": 1, "duration_hours": 1, "ssh_public_keys": [PUBLIC_KEY]}
MOST_TRIES = 20


def key_of(user: int) -> str:
    return f"key-of-user-{user}"


async def add_users(dsn: str) -> None:
    async with open_test_stores(dsn) as stores:
        for number in range(USERS):
            user = await stores.users.upsert(f"user-{number}")
            hashed = hashlib.sha256(key_of(number).encode()).digest()
            await stores.users.add_key(user.user_id, NewKey(hashed, "key-of-u", _tomorrow()))


def _tomorrow() -> datetime:
    return datetime.now(UTC) + timedelta(days=1)


async def count_rows(dsn: str) -> tuple[Counter[str], Counter[str], int]:
    """Reservations of each user, messages about each reservation, and events in all."""
    async with open_test_stores(dsn) as stores:
        rows = await stores.database.fetch("SELECT username FROM reservation_rows")
        messages = await stores.database.fetch(
            "SELECT message ->> 'reservation_id' AS reservation_id FROM pgmq.q_gpu_reservations"
        )
        events = await stores.database.fetch_value("SELECT count(*) FROM reservation_events")
    by_user = Counter(str(row["username"]) for row in rows)
    return by_user, Counter(str(row["reservation_id"]) for row in messages), int(events)


class Crowd:
    """Everybody submits; whoever gets no answer tries again with the same key."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self.accepted = 0
        self.repeated = 0
        self._lock = threading.Lock()
        self.is_half_done = threading.Event()

    def submit_all(self) -> dict[tuple[int, int], str]:
        with ThreadPoolExecutor(USERS) as pool:
            made = pool.map(self._submit_as, range(USERS))
            return {(user, number): job for user, jobs in enumerate(made) for number, job in enumerate(jobs)}

    def _submit_as(self, user: int) -> list[str]:
        return [self._submit(user, number) for number in range(EACH)]

    def _submit(self, user: int, number: int) -> str:
        for _ in range(MOST_TRIES):
            try:
                answer = self._server.call(
                    "POST", "/v1/jobs/submit", BODY, key_of(user), Idempotency_Key=f"request-{number}"
                )
            except (OSError, http.client.HTTPException):
                self._count_repeat()
                continue
            if answer.status == 503:
                self._count_repeat()
                continue
            assert answer.status == 200, answer.text
            self._count_accepted()
            return str(answer.json["job_id"])
        raise AssertionError(f"Request {number} of user {user} was never answered.")

    def _count_accepted(self) -> None:
        with self._lock:
            self.accepted += 1
            if self.accepted >= USERS * EACH // 2:
                self.is_half_done.set()

    def _count_repeat(self) -> None:
        with self._lock:
            self.repeated += 1


def test_every_submit_is_accepted_exactly_once(database: str, tmp_path: Path) -> None:
    asyncio.run(add_users(database))
    with running_api(database, tmp_path) as server:
        crowd = Crowd(server)

        def kill_in_the_middle() -> None:
            crowd.is_half_done.wait()
            server.kill()
            server.start()

        killer = threading.Thread(target=kill_in_the_middle)
        killer.start()
        jobs = crowd.submit_all()
        killer.join()
        again = Crowd(server).submit_all()
    assert crowd.repeated > 0, "the kill hit nobody"
    assert len(set(jobs.values())) == USERS * EACH
    assert again == jobs
    by_user, messages, events = asyncio.run(count_rows(database))
    assert set(by_user.values()) == {EACH}
    assert len(by_user) == USERS
    assert set(messages) == set(jobs.values())
    assert set(messages.values()) == {1}
    assert events == USERS * EACH
