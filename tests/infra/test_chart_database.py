"""The chart's PostgreSQL, really run: roles, synchronous replication, failover, backup and restore."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import asyncpg
import pytest

from gpudev.adapters.postgres.migrate import AppRole, migrate
from tests.support.infra.chart import render
from tests.support.infra.postgres import APP_PASSWORD, HOST, PASSWORDS, SCRIPTS, Server
from tests.support.infra.replication import DEADLINE_SECONDS, connect, start_both, until

pytestmark = pytest.mark.anyio

WAITS_FOR_A_REPLICA = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
Pair = tuple[Server, Server]
APP = AppRole("gpudev_app", APP_PASSWORD)


async def test_our_role_is_no_superuser_and_can_have_the_whole_schema(servers: Pair) -> None:
    connection = await start_both(*servers)
    assert not await connection.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
    assert await migrate(connection)
    assert await connection.fetchval("SELECT pgmq.send('gpu_reservations', '{}'::jsonb)")
    await connection.close()


async def test_wrong_password_is_refused(servers: Pair) -> None:
    primary, _ = servers
    primary.start()
    await (await connect(primary)).close()
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(primary.dsn, password="wrong")


async def test_write_is_acknowledged_only_once_the_replica_has_it(servers: Pair) -> None:
    primary, replica = servers
    primary.start()
    writer, watcher = await connect(primary), await connect(primary)
    writing = asyncio.create_task(writer.execute("CREATE TABLE promises (number int)"))
    await until(watcher, WAITS_FOR_A_REPLICA)
    assert not writing.done()
    replica.start()
    async with asyncio.timeout(DEADLINE_SECONDS):
        await writing
    await writer.close()
    await watcher.close()


async def test_after_the_loss_of_the_primary_the_replica_has_all_and_goes_on(servers: Pair) -> None:
    primary, replica = servers
    connection = await start_both(primary, replica)
    await connection.execute("CREATE TABLE promises (number int)")
    for number in range(200):
        await connection.execute("INSERT INTO promises VALUES ($1)", number)
    primary.kill()
    replica.promote()
    promoted = await connect(replica)
    assert await promoted.fetchval("SELECT count(*) FROM promises") == 200
    await promoted.execute("INSERT INTO promises VALUES (200)")
    await promoted.close()

    replica.stop()
    replica.start()
    again = await connect(replica)
    assert not await again.fetchval("SELECT pg_is_in_recovery()"), (
        "a restart does not make it a replica again"
    )
    assert await again.fetchval("SELECT count(*) FROM promises") == 201
    await again.close()


def leave_half_made(server: Server) -> None:
    folder = Path(f"{server.environment['PGDATA']}.new")
    folder.mkdir()
    (folder / "PG_VERSION").write_text("18\n")
    server.account.own_tree(folder)


async def test_start_that_was_interrupted_is_made_again(servers: Pair) -> None:
    primary, _ = servers
    leave_half_made(primary)
    primary.start()
    await (await connect(primary)).close()


def job_settings(name: str) -> dict[str, str]:
    """What the chart tells the job, but for its places."""
    (pod,) = (pod for pod in render("generic").pods if pod.owner == f"CronJob/postgres-{name}")
    (container,) = pod.spec["containers"]
    assert container["command"] == ["/bin/sh", f"/etc/gpu-dev/postgres/{name}.sh"]
    return {entry["name"]: entry["value"] for entry in container["env"] if "value" in entry}


def run_job(server: Server, name: str, folder: Path, **more: str) -> str:
    here = {
        "PGHOST": HOST,
        "PGPORT": str(server.port),
        "PGPASSWORD": PASSWORDS["POSTGRES_PASSWORD"],
        "PGSSLROOTCERT": server.environment["PGSSLROOTCERT"],
        "BACKUP_DIR": str(folder),
    }
    script = str(SCRIPTS / f"{name}.sh")
    return server.run("/bin/sh", script, **{**job_settings(name), **here, **more}).stdout


async def fingerprint(connection: asyncpg.Connection[asyncpg.Record]) -> dict[str, int]:
    """Every table with the number of its rows."""
    tables = await connection.fetch(
        "SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables "
        "WHERE schemaname IN ('public', 'pgmq') ORDER BY 1"
    )
    counts = {}
    for table in tables:
        query = f"SELECT count(*) FROM {table['name']}"  # noqa: S608 - the name is PostgreSQL's own
        counts[table["name"]] = await connection.fetchval(query)
    return counts


async def test_backup_comes_back_in_an_empty_database_and_nowhere_else(servers: Pair) -> None:
    primary, replica = servers
    connection = await start_both(primary, replica)
    await migrate(connection, APP)
    await connection.execute("INSERT INTO api_users (username) VALUES ('ada')")
    await connection.execute("SELECT pgmq.send('gpu_reservations', '{\"reservation_id\": \"r\"}'::jsonb)")
    before = await fingerprint(connection)
    backups = primary.folder / "backups"
    backups.mkdir()
    primary.account.own(backups)
    assert "wrote" in run_job(primary, "backup", backups)

    with pytest.raises(subprocess.CalledProcessError) as refused:
        run_job(primary, "restore", backups)
    assert "not empty" in refused.value.stderr

    await connection.close()
    socket = primary.environment["SOCKET_DIR"]
    psql = ["psql", "--no-psqlrc", "--host", socket, "--port", str(primary.port), "--username", "postgres"]
    for statement in ("ALTER DATABASE gpudev RENAME TO gpudev_old", "CREATE DATABASE gpudev OWNER gpudev"):
        primary.run(*psql, "--dbname", "postgres", "--command", statement)
    assert "restored" in run_job(primary, "restore", backups)
    restored = await connect(primary)
    assert await fingerprint(restored) == before
    assert before["public.api_users"] == 1
    assert await restored.fetchval(
        "SELECT message ->> 'reservation_id' FROM pgmq.read('gpu_reservations', 1, 1)"
    )
    assert not await migrate(restored, APP), "its schema is known to be up to date"
    await restored.close()


async def test_only_the_newest_backups_are_kept(servers: Pair) -> None:
    primary, replica = servers
    await (await start_both(primary, replica)).close()
    backups = primary.folder / "backups"
    backups.mkdir()
    for day in range(1, 5):
        (backups / f"gpudev-2026010{day}T000000Z.dump").write_text("old")
    (backups / "notes.txt").write_text("not a backup")
    primary.account.own_tree(backups)
    run_job(primary, "backup", backups, BACKUPS_KEPT="2")
    left = sorted(file.name for file in backups.iterdir())
    assert left[0] == "gpudev-20260104T000000Z.dump"
    assert len(left) == 3
    assert left[-1] == "notes.txt"


async def test_restore_without_a_backup_says_so(servers: Pair) -> None:
    primary, replica = servers
    await (await start_both(primary, replica)).close()
    with pytest.raises(subprocess.CalledProcessError) as refused:
        run_job(primary, "restore", primary.folder / "tmp")
    assert "no backup" in refused.value.stderr
