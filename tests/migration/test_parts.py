"""A database whose reservations are not yet stored in parts is upgraded whole, with writers on it."""

from __future__ import annotations

import asyncio
import itertools

import asyncpg
import pytest

from gpudev.adapters.postgres.migrate import list_migrations, migrate
from gpudev.domain.server import Member, SshAddress
from gpudev.ports.reservations import ListQuery
from tests.support.reservations import open_test_stores

pytestmark = pytest.mark.anyio

_ROWS = """
INSERT INTO api_users (username) VALUES ('ada');
INSERT INTO gpu_types (gpu_type, instance_type, max_gpus, cpus, memory_gb, max_per_node, is_active)
VALUES ('t4', 'g4dn', 4, 48, 192, 4, true);
INSERT INTO disks (disk_id, user_id, name, size_gb, created_at, state)
SELECT gen_random_uuid(), user_id, 'work', 20, now(), 'available' FROM api_users;
INSERT INTO reservations (
    reservation_id, user_id, name, gpu_type, gpu_count, node_count, duration, created_at, status, detail,
    last_updated, node_name, node_ip, node_port, ssh_host_keys, other_members, placed_at, launched_at,
    expires_at, env_vars, ssh_public_keys, cli_version, image, github_user, event_count)
SELECT gen_random_uuid(), user_id, 'gang', 't4', 3, 3, '1 hour', now(), 'active', 'It runs.', now(), 'n0',
       '10.0.0.1', 22, ARRAY['k1', 'k2'],
       '[{"node": "n1", "address": {"host": "10.0.0.2", "port": 23}, "host_keys": ["a", "b"]},
         {"node": "n2", "address": null, "host_keys": []}]',
       now(), now(), now() + interval '1 hour', '{"A": "1"}', ARRAY['key'], '0.3', 'img', 'ada', 3
FROM api_users;
INSERT INTO reservations (
    reservation_id, user_id, name, gpu_type, gpu_count, duration, created_at, status, reason, detail,
    last_updated, reservation_ended, cancelled_at)
SELECT gen_random_uuid(), user_id, 'gone', 't4', 1, '1 hour', now() - interval '1 day', 'cancelled',
       'cancelled_by_user', 'Over.', now(), now(), now()
FROM api_users;
"""


@pytest.fixture
async def old(empty_database: str, monkeypatch: pytest.MonkeyPatch) -> asyncpg.Connection:
    """A process of the version before, on its database."""
    before = tuple(itertools.takewhile(lambda one: one.name != "facts", list_migrations()))
    with monkeypatch.context() as patched:
        patched.setattr("gpudev.adapters.postgres.migrate.list_migrations", lambda: before)
        await upgrade(empty_database)
    connection = await asyncpg.connect(empty_database)
    await connection.execute(_ROWS)
    return connection


async def upgrade(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await migrate(connection)
    finally:
        await connection.close()


async def test_every_part_of_a_reservation_is_kept(empty_database: str, old: asyncpg.Connection) -> None:
    await old.close()
    await upgrade(empty_database)
    async with open_test_stores(empty_database) as stores:
        page = await stores.reservations.list_page(ListQuery())
    gang, gone = page.reservations
    assert page.total == 2
    assert gang.location.members == (
        Member("n0", SshAddress("10.0.0.1", 22), ("k1", "k2")),
        Member("n1", SshAddress("10.0.0.2", 23), ("a", "b")),
        Member("n2"),
    )
    assert (gang.settings.env_vars, gang.settings.ssh_public_keys) == ({"A": "1"}, ("key",))
    assert (gang.settings.client_version, gang.settings.image, gang.settings.github_user) == (
        "0.3",
        "img",
        "ada",
    )
    assert (gang.state.detail.data, gone.state.detail.data) == ({"words": "It runs."}, {"words": "Over."})
    assert (gone.location.members, gone.state.cancelled_at) == ((), gone.state.ended_at)


async def test_an_upgrade_outlasts_a_writer_of_the_version_before(
    empty_database: str, old: asyncpg.Connection
) -> None:
    """It has reservations and wants disks, while the migration has disks and wants reservations."""
    writing = old.transaction()
    await writing.start()
    await old.execute("UPDATE reservations SET version = version + 1")
    upgrading = asyncio.create_task(upgrade(empty_database))
    waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)"
    while not await old.fetchval(waits):  # noqa: ASYNC110 - PostgreSQL has no event for it
        await asyncio.sleep(0.01)
    try:
        await old.execute("UPDATE disks SET version = version + 1")
        await writing.commit()
    except asyncpg.DeadlockDetectedError:  # either may be chosen
        await writing.rollback()
    await upgrading
    await old.close()
