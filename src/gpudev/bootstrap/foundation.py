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
from gpudev.adapters.postgres.audit import PostgresAuditLog
from gpudev.adapters.postgres.dead_letters import PostgresDeadLetters
from gpudev.adapters.postgres.disk_ledger import PostgresDiskLedger
from gpudev.adapters.postgres.disks import PostgresDisks
from gpudev.adapters.postgres.github import PostgresGitHub
from gpudev.adapters.postgres.health import PostgresHealth
from gpudev.adapters.postgres.migrate import AppRole, migrate
from gpudev.adapters.postgres.nodes import PostgresNodes
from gpudev.adapters.postgres.notifications import PostgresNotifications
from gpudev.adapters.postgres.operations import PostgresOperations
from gpudev.adapters.postgres.pgmq import PgmqQueue
from gpudev.adapters.postgres.pool import Database, connect
from gpudev.adapters.postgres.reports import PostgresReports
from gpudev.adapters.postgres.reservations import PostgresReservations
from gpudev.adapters.postgres.retention import PostgresRetention
from gpudev.adapters.postgres.signals import PostgresSignals
from gpudev.adapters.postgres.turns import PostgresTurns
from gpudev.adapters.postgres.users import (
    PostgresUsers,
)
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
class Messages:
    """What tells controllers to look at an item, and what was given up."""

    of_reservations: PgmqQueue
    of_disks: PgmqQueue
    dead_letters: PostgresDeadLetters
    signals: PostgresSignals

    @classmethod
    def on(cls, database: Database) -> Messages:
        return cls(
            of_reservations=PgmqQueue(database, Kind.RESERVATION),
            of_disks=PgmqQueue(database, Kind.DISK, _DISK_MESSAGES_HIDDEN_FOR),
            dead_letters=PostgresDeadLetters(database),
            signals=PostgresSignals(database.dsn),
        )


@dataclass(frozen=True, slots=True)
class Stores:
    """The PostgreSQL side of every port."""

    database: Database
    reservations: PostgresReservations
    operations: PostgresOperations
    admissions: PostgresAdmissions
    nodes: PostgresNodes
    users: PostgresUsers
    github: PostgresGitHub
    audit: PostgresAuditLog
    retention: PostgresRetention
    messages: Messages
    disks: PostgresDisks
    disk_ledger: PostgresDiskLedger
    turns: PostgresTurns
    health: PostgresHealth
    notifications: PostgresNotifications
    reports: PostgresReports

    @classmethod
    def on(cls, database: Database, replica: Database | None = None) -> Stores:
        return cls(
            database=database,
            reservations=PostgresReservations(database, replica),
            operations=PostgresOperations(database),
            admissions=PostgresAdmissions(database),
            nodes=PostgresNodes(database),
            users=PostgresUsers(database),
            github=PostgresGitHub(database),
            audit=PostgresAuditLog(database),
            retention=PostgresRetention(database),
            messages=Messages.on(database),
            disks=PostgresDisks(database),
            disk_ledger=PostgresDiskLedger(database),
            turns=PostgresTurns(database),
            health=PostgresHealth(database),
            notifications=PostgresNotifications(database),
            reports=PostgresReports(database),
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
        await stores.nodes.sync_types(offered_catalogue(settings).types)
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
        stopped_limit=settings.time.stopped,
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
