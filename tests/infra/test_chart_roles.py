"""As whom the chart's pods connect to PostgreSQL, and what each of them could do there."""

from __future__ import annotations

import asyncio
import os
import re
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import pytest

from tests.support.infra.chart import (
    CHART,
    EXTERNAL_DATABASE,
    NAMESPACE,
    HelmRefused,
    Pod,
    chosen,
    render,
    run_helm,
)
from tests.support.infra.postgres import APP_PASSWORD, HOST, PASSWORDS, Server, prepared_pair
from tests.support.infra.replication import connect, start_both

pytestmark = pytest.mark.anyio

OWNER_SECRET, APP_SECRET = "postgres-credentials", "postgres-app"
"""Names of Secrets."""
ASYNCHRONOUS = "postgres.synchronous=false"
TWO_ADDRESSES = (*EXTERNAL_DATABASE, "externalDatabase.ownerSecret=database-owner")


def list_secrets(pod: Pod) -> set[str]:
    entries = [entry for container in pod.containers for entry in container.get("env", ())]
    named = [entry["valueFrom"]["secretKeyRef"]["name"] for entry in entries if "valueFrom" in entry]
    sources = [entry for container in pod.containers for entry in container.get("envFrom", ())]
    return {*named, *(entry["secretRef"]["name"] for entry in sources if "secretRef" in entry)}


def find_pod(owner: str, settings: tuple[str, ...] = ()) -> Pod:
    (pod,) = (pod for pod in render("generic", settings).pods if pod.owner == owner)
    return pod


def read_environment(pod: Pod) -> dict[str, str]:
    (container,) = pod.containers
    return {entry["name"]: entry["value"] for entry in container.get("env", ()) if "value" in entry}


def list_clients() -> list[Pod]:
    return [pod for pod in render("generic").pods if pod.labels.get("gpu-dev/uses-database")]


def test_the_service_has_no_password_of_the_owner() -> None:
    service = [pod for pod in list_clients() if not re.search("migrate|postgres", pod.owner)]
    assert {"Deployment/api-service", "Deployment/job-processor", "Deployment/ssh-proxy"} <= {
        pod.owner for pod in service
    }
    for pod in service:
        assert list_secrets(pod) == {APP_SECRET}, pod.owner
        assert read_environment(pod)["POSTGRES_USER"] == "gpudev_app"


def test_migrations_connect_as_the_owner() -> None:
    migration = find_pod("Job/migrate-1")
    assert list_secrets(migration) == {OWNER_SECRET, APP_SECRET}
    assert read_environment(migration)["POSTGRES_OWNER_USER"] == "gpudev"


@pytest.mark.parametrize("owner", [pod.owner for pod in list_clients()])
def test_every_client_verifies_the_server_and_has_no_key_of_it(owner: str) -> None:
    pod = find_pod(owner)
    assert read_environment(pod)["PGSSLMODE"] == "verify-full"
    volumes = {volume["name"]: volume for volume in pod.spec["volumes"]}
    (mount,) = (one for one in pod.containers[0]["volumeMounts"] if one["name"] == "postgres-ca")
    assert read_environment(pod)["PGSSLROOTCERT"] == f"{mount['mountPath']}/ca.crt"
    assert [item["key"] for item in volumes["postgres-ca"]["secret"]["items"]] == ["ca.crt"]
    assert not [name for name in volumes if name == "postgres-tls"]


def test_an_external_database_may_have_an_owner_for_migrations() -> None:
    assert list_secrets(find_pod("Job/migrate-1", TWO_ADDRESSES)) == {"database", "database-owner"}
    assert list_secrets(find_pod("Deployment/api-service", TWO_ADDRESSES)) == {"database"}


def test_an_external_database_may_have_one_address_for_all() -> None:
    for owner in ("Job/migrate-1", "Deployment/api-service"):
        assert list_secrets(find_pod(owner, EXTERNAL_DATABASE)) == {"database"}


@pytest.mark.parametrize("settings, warned", [((), False), (EXTERNAL_DATABASE, True), (TWO_ADDRESSES, False)])
def test_who_connects_as_the_owner_is_told(settings: tuple[str, ...], *, warned: bool) -> None:
    notes = run_helm(
        *("install", "gpu-dev", str(CHART), "--namespace", NAMESPACE, "--dry-run=client"),
        *chosen("generic", settings),
    ).partition("NOTES:")[2]
    assert "connects to PostgreSQL" in notes
    assert ("WARNING" in notes) is warned


def test_admins_that_are_usernames_are_refused() -> None:
    with pytest.raises(HelmRefused, match="admins"):
        render("generic", ("access.admins[0]=ada",))


def test_credentials_of_older_clients_are_off_unless_chosen() -> None:
    name = "GPU_DEV_ACCEPT_AWS_CREDENTIALS"
    assert name not in render("generic").text
    assert name in render("generic", ("access.acceptAwsCredentials=true",)).text


def migrate_by_job(server: Server, password: str = APP_PASSWORD) -> subprocess.CompletedProcess[str]:
    """What the chart's migration job runs, with its environment but for the server's place."""
    settings = render("generic", (ASYNCHRONOUS,)).get("ConfigMap", "gpu-dev-settings")["data"]
    here = {
        "POSTGRES_HOST": HOST,
        "POSTGRES_PORT": str(server.port),
        "POSTGRES_PASSWORD": password,
        "POSTGRES_OWNER_PASSWORD": PASSWORDS["POSTGRES_PASSWORD"],
        "PGSSLROOTCERT": server.environment["PGSSLROOTCERT"],
        "PATH": os.environ["PATH"],
    }
    own = read_environment(find_pod("Job/migrate-1", (ASYNCHRONOUS,)))
    return subprocess.run(
        [sys.executable, "-m", "gpudev.cli.main", "server", "migrate"],
        env={**settings, **own, **here},
        capture_output=True,
        text=True,
        check=False,
    )


async def migrated(server: Server, password: str = APP_PASSWORD) -> None:
    done = await asyncio.to_thread(migrate_by_job, server, password)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def primary() -> Iterator[Server]:
    """A migrated primary that no test below damages."""
    with prepared_pair(ASYNCHRONOUS) as (server, _):
        asyncio.run(start_and_migrate(server))
        yield server


async def start_and_migrate(server: Server) -> None:
    server.start()
    await (await connect(server)).close()
    await migrated(server)


async def connect_as_service(server: Server, password: str = "") -> Any:
    """With the user and the Secret that the pods of the API have."""
    pod = find_pod("Deployment/api-service")
    settings = render("generic").get("ConfigMap", "gpu-dev-settings")["data"]
    user = {**settings, **read_environment(pod)}["POSTGRES_USER"]
    known = {APP_SECRET: APP_PASSWORD, OWNER_SECRET: PASSWORDS["POSTGRES_PASSWORD"]}
    (secret,) = list_secrets(pod)
    return await asyncpg.connect(server.dsn_of(user), password=password or known[secret])


@pytest.fixture
async def service(primary: Server) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    connection = await connect_as_service(primary)
    try:
        yield connection
    finally:
        await connection.close()


async def test_the_service_does_its_work_as_a_role_that_owns_nothing(
    service: asyncpg.Connection[asyncpg.Record],
) -> None:
    assert await service.fetchval("SELECT current_user") == "gpudev_app"
    assert await service.fetchval("SELECT pgmq.send('gpu_reservations', '{}'::jsonb)")
    await service.execute("INSERT INTO api_users (username) VALUES ('ada')")
    owned = "SELECT count(*) FROM pg_class WHERE pg_has_role(current_user, relowner, 'MEMBER')"
    assert await service.fetchval(owned) == 0


@pytest.mark.threat(
    "A service that was taken over changes the schema or the audit log of the chart's database."
)
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE mine (id integer)",
        "CREATE ROLE mine",
        "ALTER ROLE gpudev_app CREATEROLE",
        "ALTER ROLE gpudev PASSWORD 'mine'",
        "ALTER TABLE api_users ADD COLUMN mine text",
        "ALTER TABLE audit_entries DISABLE TRIGGER append_only",
        "ALTER TABLE audit_entries OWNER TO gpudev_app",
        "DROP TRIGGER append_only ON audit_entries",
        "DROP TABLE reservation_records CASCADE",
        "DROP DATABASE gpudev",
        "TRUNCATE audit_entries CASCADE",
        "UPDATE audit_entries SET username = 'innocent'",
        "DELETE FROM audit_entries",
        "DELETE FROM audit_seals",
        "SET session_replication_role = replica",
        "SET ROLE gpudev",
        "COPY api_users TO PROGRAM 'true'",
    ],
)
async def test_what_the_service_may_not_do(
    service: asyncpg.Connection[asyncpg.Record], statement: str
) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await service.execute(statement)


@pytest.mark.threat("Passwords and rows are read on the way to the chart's database.")
@pytest.mark.parametrize("user", ["gpudev", "gpudev_app"])
async def test_a_connection_without_tls_is_rejected(primary: Server, user: str) -> None:
    password = APP_PASSWORD if user == "gpudev_app" else PASSWORDS["POSTGRES_PASSWORD"]
    with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError, match="no encryption"):
        await asyncpg.connect(primary.dsn_of(user).partition("?")[0], password=password, ssl="disable")


def test_replication_without_tls_is_rejected(primary: Server) -> None:
    password = PASSWORDS["REPLICATION_PASSWORD"]
    login = [f"--host={HOST}", f"--port={primary.port}", "--username=replicator"]
    copy = ["pg_basebackup", *login, f"--pgdata={primary.folder / 'copy'}"]
    with pytest.raises(subprocess.CalledProcessError) as refused:
        primary.run(*copy, PGSSLMODE="disable", PGPASSWORD=password)
    assert "no encryption" in refused.value.stderr


async def test_a_server_that_only_poses_as_the_database_is_found_out(primary: Server) -> None:
    """One with a certificate of its own, as anybody can make it, and one of ours under another name."""
    stranger = ssl.create_default_context()
    with pytest.raises(ssl.SSLCertVerificationError, match="unable to get local issuer"):
        await asyncpg.connect(primary.dsn.partition("?")[0], ssl=stranger)
    with pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"):
        await asyncpg.connect(primary.dsn.replace(HOST, "127.0.0.1"))


async def test_a_server_from_before_the_role_gets_it_by_the_next_start_and_migration() -> None:
    with prepared_pair() as (primary, replica):
        owner = await start_both(primary, replica)
        await owner.close()
        take_away(primary, "ALTER ROLE gpudev NOCREATEROLE")
        refused = await asyncio.to_thread(migrate_by_job, primary)
        assert "CREATE ROLE gpudev_app" in refused.stdout + refused.stderr
        primary.stop()
        primary.start()
        await (await connect(primary)).close()
        await migrated(primary)
        await (await connect_as_service(primary)).close()
        primary.kill()
        replica.promote()
        await (await connect_as_service(replica)).close()


def take_away(server: Server, statement: str) -> None:
    psql = ["psql", "--no-psqlrc", "--quiet", f"--host={server.environment['SOCKET_DIR']}"]
    who = [f"--port={server.port}", "--username=postgres", "--dbname=postgres"]
    server.run(*psql, *who, f"--command={statement}")


async def test_a_changed_password_is_in_force_after_the_next_migration() -> None:
    with prepared_pair(ASYNCHRONOUS) as (primary, _):
        await start_and_migrate(primary)
        await migrated(primary, "another")
        await (await connect_as_service(primary, "another")).close()
        with pytest.raises(asyncpg.InvalidPasswordError):
            await connect_as_service(primary)
