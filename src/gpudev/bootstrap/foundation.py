"""What every process of the server starts with: its stores, its clock, its fleet, and its first steps."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from gpudev.adapters.local.fleet import Fleet, default_fleet_choice, load_fleet
from gpudev.adapters.local.processes.linux import die_with_parent
from gpudev.adapters.local.state import StateFolder
from gpudev.adapters.postgres.admissions import PostgresAdmissions
from gpudev.adapters.postgres.api_keys import PostgresApiKeys, PostgresLoginFailures
from gpudev.adapters.postgres.app_role import AppRole
from gpudev.adapters.postgres.audit import PostgresAuditLog
from gpudev.adapters.postgres.dead_letters import PostgresDeadLetters
from gpudev.adapters.postgres.disk_ledger import PostgresDiskLedger
from gpudev.adapters.postgres.disks import PostgresDisks
from gpudev.adapters.postgres.forecasts import PostgresForecasts
from gpudev.adapters.postgres.github_bindings import PostgresGitHubBindings
from gpudev.adapters.postgres.github_keys import PostgresGitHubKeys
from gpudev.adapters.postgres.gpu_types import PostgresGpuTypes
from gpudev.adapters.postgres.health import PostgresHealth
from gpudev.adapters.postgres.history import PostgresHistory
from gpudev.adapters.postgres.identities import PostgresIdentities
from gpudev.adapters.postgres.job_outputs import PostgresJobOutputs
from gpudev.adapters.postgres.leftovers import PostgresLeftovers
from gpudev.adapters.postgres.migrate import migrate
from gpudev.adapters.postgres.nodes import PostgresNodes
from gpudev.adapters.postgres.notifications import PostgresNotifications
from gpudev.adapters.postgres.operations import PostgresOperations
from gpudev.adapters.postgres.pgmq import PgmqQueue
from gpudev.adapters.postgres.pool import Database, connect
from gpudev.adapters.postgres.reports import PostgresReports
from gpudev.adapters.postgres.reservations import PostgresReservations
from gpudev.adapters.postgres.signals import PostgresSignals
from gpudev.adapters.postgres.turns import PostgresTurns
from gpudev.adapters.postgres.usages import PostgresUsages
from gpudev.adapters.postgres.users import PostgresUsers
from gpudev.bootstrap.gpu_types_file import read_catalogue
from gpudev.bootstrap.policy_file import read_policy
from gpudev.domain.catalogue import DEFAULT_CATALOGUE, Catalogue
from gpudev.domain.errors import Conflict
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.idle import IdlePolicy
from gpudev.domain.policy import SharingPolicy, with_default_quota
from gpudev.domain.schedule.grid import Grid
from gpudev.ports.turns import Kind
from gpudev.settings import Settings
from gpudev.telemetry import configure_logging

_REPLICA_SECONDS = 2.0
_DISK_MESSAGES_HIDDEN_FOR = timedelta(seconds=60)


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Stores:
    """The PostgreSQL side of every port."""

    database: Database
    reservations: PostgresReservations
    operations: PostgresOperations
    admissions: PostgresAdmissions
    gpu_types: PostgresGpuTypes
    users: PostgresUsers
    identities: PostgresIdentities
    github_keys: PostgresGitHubKeys
    github_bindings: PostgresGitHubBindings
    api_keys: PostgresApiKeys
    login_failures: PostgresLoginFailures
    audit: PostgresAuditLog
    leftovers: PostgresLeftovers
    queue: PgmqQueue
    disks: PostgresDisks
    disk_queue: PgmqQueue
    turns: PostgresTurns
    disk_ledger: PostgresDiskLedger
    job_outputs: PostgresJobOutputs
    signals: PostgresSignals
    health: PostgresHealth
    forecasts: PostgresForecasts
    nodes: PostgresNodes
    usages: PostgresUsages
    notifications: PostgresNotifications
    reports: PostgresReports
    dead_letters: PostgresDeadLetters
    history: PostgresHistory | None = None
    """Only where there is a replica."""

    @classmethod
    def on(cls, database: Database, replica: Database | None = None) -> Stores:
        reservations = PostgresReservations(database)
        return cls(
            database=database,
            reservations=reservations,
            operations=PostgresOperations(database),
            admissions=PostgresAdmissions(database),
            gpu_types=PostgresGpuTypes(database),
            users=PostgresUsers(database),
            identities=PostgresIdentities(database),
            github_keys=PostgresGitHubKeys(database),
            github_bindings=PostgresGitHubBindings(database),
            api_keys=PostgresApiKeys(database),
            login_failures=PostgresLoginFailures(database),
            audit=PostgresAuditLog(database),
            leftovers=PostgresLeftovers(database),
            queue=PgmqQueue(database, Kind.RESERVATION),
            disks=PostgresDisks(database),
            disk_queue=PgmqQueue(database, Kind.DISK, _DISK_MESSAGES_HIDDEN_FOR),
            turns=PostgresTurns(database),
            job_outputs=PostgresJobOutputs(database),
            disk_ledger=PostgresDiskLedger(database),
            signals=PostgresSignals(database.dsn),
            health=PostgresHealth(database),
            forecasts=PostgresForecasts(database),
            nodes=PostgresNodes(database),
            usages=PostgresUsages(database),
            notifications=PostgresNotifications(database),
            reports=PostgresReports(database),
            dead_letters=PostgresDeadLetters(database),
            history=PostgresHistory(reservations, PostgresReservations(replica)) if replica else None,
        )


def run_migrations() -> tuple[str, ...]:
    return asyncio.run(prepare_database(Settings()))


async def prepare_database(settings: Settings) -> tuple[str, ...]:
    """Bring the schema up to date and the GPU types in line with what is on offer."""
    connection = await connect(settings.database.owner_dsn)
    login = settings.database.app_login
    try:
        applied = await migrate(connection, AppRole(*login) if login else None)
    finally:
        await connection.close()
    async with open_stores(settings) as stores:
        await stores.gpu_types.sync(offered_catalogue(settings).types)
    return applied


async def claim_database(settings: Settings, stores: Stores) -> None:
    """Refuse a database whose reservations live on another machine: they would look lost from here."""
    if settings.local.state_dir is not None and not uses_kubernetes(settings):
        await claim_for(StateFolder(settings.local.state_dir).read_cluster_id(), stores)


async def claim_for(cluster_id: str, stores: Stores) -> None:
    if not await stores.health.claim_for_cluster(cluster_id):
        raise Conflict("database_of_another_cluster", code="database_taken")


@asynccontextmanager
async def open_stores(settings: Settings) -> AsyncIterator[Stores]:
    size = settings.database.max_connections
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(Database(settings.database.dsn, max_connections=size))
        replica = None
        if settings.database.replica_url:
            # A replica is for speed: before it is slow, the primary is asked.
            patience = {"connect_timeout": _REPLICA_SECONDS, "command_timeout": _REPLICA_SECONDS}
            replica = await stack.enter_async_context(
                Database(settings.database.replica_url, max_connections=size, **patience)
            )
        yield Stores.on(database, replica)


def read_fleet(settings: Settings) -> Fleet:
    return load_fleet(settings.local.fleet or default_fleet_choice())


def offered_catalogue(settings: Settings) -> Catalogue:
    """What can be reserved: the types of the fleet on one machine, the operator's elsewhere."""
    if uses_kubernetes(settings) or settings.local.state_dir is None:
        return read_catalogue(settings.cluster.gpu_types_file, DEFAULT_CATALOGUE)
    return read_fleet(settings).catalogue(DEFAULT_CATALOGUE)


def make_policy(settings: Settings) -> TimePolicy:
    return TimePolicy(
        grace=settings.time.grace,
        longest=settings.time.longest,
        start_limit=settings.time.start_limit,
        progress_limit=settings.time.progress_limit,
        queue_limit=settings.time.max_queue,
        start_allowance=settings.time.start_allowance,
        grid=Grid(settings.time.plan_step),
    )


def read_sharing(settings: Settings) -> SharingPolicy:
    """Where there is more than one user, each has the default quota unless the policy gives another."""
    policy = read_policy(settings.cluster.policy_file, offered_catalogue(settings))
    return policy if has_sole_owner(settings) else with_default_quota(policy)


def has_sole_owner(settings: Settings) -> bool:
    """Started by `gpu-dev up`, and nobody but who started it can log in."""
    return settings.local.state_dir is not None and not settings.aws.accounts


def make_idle_policy(settings: Settings) -> IdlePolicy:
    return IdlePolicy(
        after=settings.idle.after,
        by_type=settings.idle.by_type,
        countdown=settings.idle.countdown,
        known_for=5 * settings.idle.sample_every,
    )


def uses_kubernetes(settings: Settings) -> bool:
    return settings.cluster.kind == "kubernetes"


def begin(settings: Settings) -> None:
    configure_logging(settings.process.log_level)
    if settings.process.parent_pid:
        die_with_parent(signal.SIGTERM)
        if os.getppid() != settings.process.parent_pid:
            raise SystemExit("The process that started this one has ended.")
