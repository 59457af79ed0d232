"""SQL and Python say the same: every query fits the schema, every CHECK fits its enum."""

from __future__ import annotations

import re
from enum import StrEnum
from importlib.resources import files

import asyncpg
import pytest

from gpudev.adapters.postgres.queries import NOUNS, load_queries
from gpudev.domain.audit import AuditOutcome
from gpudev.domain.disk import DiskEventKind, DiskOperationKind, DiskState
from gpudev.domain.lifecycle import Status
from gpudev.domain.notification import TargetKind
from gpudev.domain.operations import OperationKind, OperationStatus
from gpudev.domain.reasons import Reason
from gpudev.domain.reservation import EventKind
from gpudev.ports.queue import Channel

pytestmark = pytest.mark.anyio

QUERIES = [(noun, name) for noun in NOUNS for name in load_queries(noun)]


def test_every_sql_file_is_a_known_noun() -> None:
    folder = files("gpudev.adapters.postgres").joinpath("sql")
    found = {entry.name.removesuffix(".sql") for entry in folder.iterdir() if entry.name.endswith(".sql")}
    assert found == set(NOUNS)


async def test_every_query_fits_the_schema(database: str) -> None:
    connection = await asyncpg.connect(database)
    try:
        for noun, name in QUERIES:
            try:
                await connection.prepare(load_queries(noun)[name])
            except asyncpg.PostgresError as error:
                pytest.fail(f"{noun}.{name}: {error}")
    finally:
        await connection.close()


@pytest.mark.parametrize(
    "constraint,enum",
    [
        ("reservations_status", Status),
        ("reservations_reason", Reason),
        ("reservation_events_kind", EventKind),
        ("operations_kind", OperationKind),
        ("operations_status", OperationStatus),
        ("notification_targets_kind", TargetKind),
        ("audit_entries_outcome", AuditOutcome),
        ("disks_state", DiskState),
        ("disk_events_kind", DiskEventKind),
        ("disk_operations_kind", DiskOperationKind),
        ("disk_operations_status", OperationStatus),
    ],
)
async def test_a_check_allows_exactly_the_members_of_its_enum(
    database: str, constraint: str, enum: type[StrEnum]
) -> None:
    connection = await asyncpg.connect(database)
    try:
        definition = await connection.fetchval(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = $1", constraint
        )
    finally:
        await connection.close()
    assert set(re.findall(r"'(\w+)'", definition)) == {member.value for member in enum}


def test_every_channel_that_sql_notifies_has_a_listener() -> None:
    notified = {
        channel
        for noun in NOUNS
        for query in load_queries(noun).values()
        for channel in re.findall(r"pg_notify\('(\w+)'", query)
    }
    assert notified == {channel.value for channel in Channel}
