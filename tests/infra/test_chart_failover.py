"""The chart's primary is lost while it is in use: what was acknowledged stays, and the product goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import pytest

from gpudev.adapters.postgres.migrate import migrate
from tests.infra.test_chart_database import APP, fingerprint, run_job
from tests.support.infra.postgres import APP_PASSWORD, PASSWORDS, Server, prepared_pair
from tests.support.infra.replication import connect, read_promises, start_both, until, writing
from tests.support.infra.service import Service, running_service
from tests.support.machine import Machine, running_machine, wait_for

pytestmark = pytest.mark.anyio

Pair = tuple[Server, Server]
WRITERS = 8


@pytest.fixture
def loose_servers() -> Iterator[Pair]:
    """As `postgres.synchronous=false` has them."""
    with prepared_pair("postgres.synchronous=false") as pair:
        yield pair


async def test_in_the_middle_of_writes_nothing_that_was_acknowledged_is_lost(servers: Pair) -> None:
    primary, replica = servers
    await (await start_both(primary, replica)).close()
    async with writing(primary, WRITERS, wanted=500) as writes:
        await writes.enough.wait()
        primary.kill()
    replica.promote()
    kept = await read_promises(replica)
    assert len(writes.acknowledged) >= 500
    assert writes.find_lost(kept) == set()


async def test_without_synchronous_replication_only_the_last_writes_can_be_lost(loose_servers: Pair) -> None:
    """How many, and of how long a time, `python -m bench failover` measures."""
    primary, replica = loose_servers
    connection = await start_both(primary, replica)
    await connection.execute("CREATE TABLE follows ()")
    await connection.close()
    following = await connect(replica)
    await until(following, "SELECT to_regclass('follows') IS NOT NULL")
    await following.close()
    async with writing(primary, 1, wanted=500) as writes:
        await writes.enough.wait()
        primary.kill()
    replica.promote()
    kept = await read_promises(replica)
    lost = writes.find_lost(kept)
    assert kept == set(range(len(kept))), "what is there has no gaps"
    assert all(number >= len(kept) for number in lost)


async def test_a_primary_without_synchronous_replication_waits_for_nobody(loose_servers: Pair) -> None:
    primary, _ = loose_servers
    primary.start()
    connection = await connect(primary)
    await connection.execute("CREATE TABLE promises (number int)")
    await connection.close()


async def test_a_backup_comes_back_on_an_empty_server(servers: Pair) -> None:
    primary, replica = servers
    connection = await start_both(primary, replica)
    await migrate(connection, APP)
    await connection.execute("INSERT INTO api_users (username) VALUES ('ada')")
    before = await fingerprint(connection)
    await connection.close()
    with TemporaryDirectory(prefix="gpu-dev-backups-") as name, prepared_pair() as others:
        backups = Path(name)
        primary.account.own(backups)
        run_job(primary, "backup", backups)
        for server in servers:
            server.kill()
        empty = await start_both(*others)
        assert await fingerprint(empty) == {}
        run_job(others[0], "restore", backups)
        assert await fingerprint(empty) == before
        assert before["public.api_users"] == 1
        await empty.close()


def test_the_product_goes_on_with_the_promoted_replica(servers: Pair) -> None:
    asyncio.run(prepare(servers))
    with (
        running_service(servers[0].port) as service,
        running_machine("--fleet", "test", **addresses(servers[0], service)) as machine,
    ):
        reservation = machine.reserve("-t", "t4")
        fail_over(servers, service)
        wait_for(lambda: machine.run("show", reservation, check=False).returncode == 0, "the API to go on")
        assert machine.show(reservation)["status"] == "active"
        assert machine.ssh(reservation, "exit 7").returncode == 7
        another = wait_for(lambda: try_to_reserve(machine), "a reservation after the failover")
        machine.run("cancel", another, reservation, "--yes")


async def prepare(servers: Pair) -> None:
    await (await start_both(*servers)).close()


def addresses(primary: Server, service: Service) -> dict[str, str]:
    """Of the service and of the owner, by the Service, with the certificate verified."""
    passwords = {"gpudev_app": APP_PASSWORD, "gpudev": PASSWORDS["POSTGRES_PASSWORD"]}
    names = {"gpudev_app": "GPU_DEV_DATABASE_URL", "gpudev": "GPU_DEV_DATABASE_OWNER_URL"}
    return {
        name: primary.dsn_of(f"{user}:{quote(passwords[user])}").replace(
            f":{primary.port}/", f":{service.port}/"
        )
        for user, name in names.items()
    }


def fail_over(servers: Pair, service: Service) -> None:
    """As the guide says: the primary is gone, the replica is promoted, the Service leads to it."""
    primary, replica = servers
    primary.kill()
    replica.promote()
    service.target = replica.port


def try_to_reserve(machine: Machine) -> str | None:
    done = machine.run("reserve", "--yes", "-t", "t4", "--json", check=False)
    return str(json.loads(done.stdout)["reservation_id"]) if done.returncode == 0 else None
