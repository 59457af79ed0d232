"""What is in the database while the API is measured: a user with a long past, and a busy cluster."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import asyncpg

from gpudev.adapters.postgres.migrate import migrate
from gpudev.adapters.postgres.pool import Database
from gpudev.bootstrap.foundation import Stores
from gpudev.domain.catalogue import DEFAULT_CATALOGUE
from gpudev.domain.names import UserId
from gpudev.ports.users import NewKey, User

KEY = "key-of-the-benchmark"
JOBS = 10_000
_USERS = 100
_LIVE_OF_EACH = 3

_ADD_ENDED = """
WITH added AS (
    INSERT INTO reservation_records (
        reservation_id, user_id, name, gpu_type, gpu_count, duration, created_at, status, reason, detail,
        placed_at, launched_at, expires_at, ended_at, cleaned_at, last_updated, version, event_count)
    SELECT id, $1, 'job-' || left(id::text, 8), 't4', 1, interval '1 hour', began, 'expired', 'time_is_up',
           '{"key": "reason_time_is_up"}', began, began, over, over, over, over, 5, 5
    FROM generate_series(1, $2) AS number,
         LATERAL (SELECT gen_random_uuid() AS id, now() - (number + 120) * interval '1 minute' AS began),
         LATERAL (SELECT began + interval '1 hour' AS over)
    ON CONFLICT DO NOTHING
    RETURNING reservation_id
), set_up AS (
    INSERT INTO reservation_settings
    SELECT reservation_id, '', '{"A": "1"}', ARRAY[$3::text], '', '1.0.0' FROM added
), counted AS (
    INSERT INTO reservation_counts AS known (user_id, gpu_type, slot, counted)
    SELECT $1, 't4', 0, count(*) FROM added
    ON CONFLICT (user_id, gpu_type, slot) DO UPDATE SET counted = known.counted + excluded.counted
)
INSERT INTO reservation_members
SELECT reservation_id, 0, 't4-0', '10.0.0.1', 30000, ARRAY[$3::text] FROM added
"""
_ADD_LIVE = """
WITH added AS (
    INSERT INTO reservation_records (
        reservation_id, user_id, name, gpu_type, gpu_count, duration, created_at, status, detail, placed_at,
        last_updated, queue_position)
    SELECT id, user_id, 'job-' || left(id::text, 8), 't4', 1, interval '1 hour', now(),
           CASE WHEN number = 1 THEN 'queued' ELSE 'preparing' END,
           '{"key": "words", "data": {"words": "Busy."}}',
           CASE WHEN number > 1 THEN now() END, now(), number
    FROM (SELECT gen_random_uuid() AS id, user_id, number
          FROM unnest($1::integer[]) AS user_id, generate_series(1, $2) AS number) made
    ON CONFLICT DO NOTHING
    RETURNING reservation_id, user_id, status
), set_up AS (
    INSERT INTO reservation_settings SELECT reservation_id, '', '{}', ARRAY[$3::text], '', '' FROM added
), counted AS (
    INSERT INTO reservation_counts AS known (user_id, gpu_type, slot, counted)
    SELECT user_id, 't4', 0, count(*) FROM added GROUP BY user_id
    ON CONFLICT (user_id, gpu_type, slot) DO UPDATE SET counted = known.counted + excluded.counted
)
INSERT INTO reservation_members
SELECT reservation_id, 0, 't4-0', NULL, NULL, '{}' FROM added WHERE status = 'preparing'
"""
_CHOOSE_ONE = """
SELECT reservation_id FROM reservation_records WHERE user_id = $1 ORDER BY created_at OFFSET 5000 LIMIT 1
"""
_REMOVE_EVENTS = """
DELETE FROM reservation_events e USING reservation_records r
WHERE r.reservation_id = e.reservation_id AND r.user_id = $1
"""
_REMOVE_LIVE = """
WITH removed AS (
    DELETE FROM reservation_records WHERE user_id = $1 AND cleaned_at IS NULL RETURNING gpu_type
)
UPDATE reservation_counts SET counted = counted - gone.count
FROM (SELECT gpu_type, count(*) FROM removed GROUP BY gpu_type) gone
WHERE user_id = $1 AND reservation_counts.gpu_type = gone.gpu_type AND slot = 0
"""
_TIDY = """
VACUUM ANALYZE reservation_records, reservation_settings, reservation_members, reservation_events,
    pgmq.q_gpu_reservations
"""
_HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"


@dataclass(frozen=True, slots=True)
class Data:
    dsn: str
    user_id: UserId
    job_id: str

    async def remove_submitted(self) -> None:
        """Nobody ends what the benchmark submits, and a queue that only grows is no fair neighbour."""
        connection = await asyncpg.connect(self.dsn)
        try:
            async with connection.transaction():
                await connection.execute(_REMOVE_EVENTS, self.user_id)
                await connection.execute(_REMOVE_LIVE, self.user_id)
                await connection.execute("SELECT pgmq.purge_queue('gpu_reservations')")
            await connection.execute(_TIDY)
        finally:
            await connection.close()


async def fill(dsn: str) -> Data:
    connection = await asyncpg.connect(dsn)
    try:
        await migrate(connection)
        user, others = await _add_users(dsn)
        await connection.execute(_ADD_ENDED, user.user_id, JOBS, _HOST_KEY)
        await connection.execute(_ADD_LIVE, [other.user_id for other in others], _LIVE_OF_EACH, _HOST_KEY)
        await connection.execute("VACUUM ANALYZE")
        job_id = await connection.fetchval(_CHOOSE_ONE, user.user_id)
        return Data(dsn, user.user_id, str(job_id))
    finally:
        await connection.close()


async def _add_users(dsn: str) -> tuple[User, list[User]]:
    database = Database(dsn)
    await database.open()
    try:
        stores = Stores.on(database)
        await stores.nodes.sync_types(DEFAULT_CATALOGUE.types)
        user = await stores.users.upsert("bench")
        key = NewKey(hashlib.sha256(KEY.encode()).digest(), KEY[:8], datetime.now(UTC) + timedelta(hours=2))
        await stores.users.add_key(user.user_id, key)
        return user, [await stores.users.upsert(f"other-{number}") for number in range(_USERS)]
    finally:
        await database.close()
