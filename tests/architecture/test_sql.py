"""SQL and Python say the same: every query fits the schema, every CHECK fits its enum."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import fields
from enum import StrEnum
from importlib.resources import files

import asyncpg
import pytest

from gpudev.adapters.postgres.queries import NOUNS, load_queries, read_sql
from gpudev.domain.audit import AuditOutcome
from gpudev.domain.disk import DELETED
from gpudev.ports.queue import Channel
from gpudev.texts.vocabulary import (
    ENGAGED,
    LIVE,
    PLACED,
    WAITING,
    DiskEventKind,
    DiskOperationKind,
    DiskState,
    EventKind,
    OperationKind,
    OperationStatus,
    Reason,
    Status,
    TargetKind,
)
from gpudev.wire.jobs import JobDetail

pytestmark = pytest.mark.anyio

QUERIES = [(noun, name) for noun in NOUNS for name in load_queries(noun)]


def test_every_sql_file_is_a_known_noun() -> None:
    folder = files("gpudev.adapters.postgres").joinpath("sql")
    found = {entry.name.removesuffix(".sql") for entry in folder.iterdir() if entry.name.endswith(".sql")}
    assert found == {*NOUNS, "schema"}


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


@pytest.mark.parametrize("noun", NOUNS)
def test_parameters_have_names(noun: str) -> None:
    assert _list_numbered(read_sql(noun)) == []


def _list_numbered(text: str) -> list[str]:
    return re.findall(r"\$\d+", text)


@pytest.mark.parametrize("noun", NOUNS)
def test_every_query_has_a_description(noun: str) -> None:
    assert _list_undescribed(read_sql(noun)) == []


def _list_undescribed(text: str) -> list[str]:
    """The queries without a comment on the line before."""
    lines = text.splitlines()
    return [
        line
        for before, line in zip(["", *lines], lines, strict=False)
        if line.startswith("-- name:") and not before.startswith("-- ")
    ]


MOST_PARAMETERS = 16


@pytest.mark.parametrize("noun, name", QUERIES)
def test_a_statement_has_few_parameters(noun: str, name: str) -> None:
    assert _count_parameters(load_queries(noun)[name]) <= MOST_PARAMETERS


def _count_parameters(text: str) -> int:
    return len(set(re.findall(r"\$\d+", text)))


@pytest.mark.parametrize("noun, name", QUERIES)
def test_no_parameter_hides_columns_in_json(noun: str, name: str) -> None:
    assert _list_hidden_rows(load_queries(noun)[name]) == []


def _list_hidden_rows(text: str) -> list[str]:
    """What JSON in a parameter is made into: the row type that the function is given, or nothing."""
    unpacked = r"json\w*_(?:to|populate)_record(?:set)?\((?:NULL::(\w+), *)?\$\d+"
    return re.findall(unpacked, text)


@pytest.mark.parametrize("noun, name", QUERIES)
def test_a_write_stores_what_it_is_given(noun: str, name: str) -> None:
    """What is written is decided by a plan or a use case; conditions of SQL are guards."""
    assert not _decides(load_queries(noun)[name])


def _decides(text: str) -> bool:
    is_write = re.search(r"\b(?:INSERT INTO|UPDATE|DELETE FROM|pgmq\.(?:send|archive|delete))\b", text)
    return bool(is_write and re.search(r"\bCASE\b", text))


def test_what_these_tests_find() -> None:
    assert _count_parameters("SELECT $1, $2, $1") == 2
    assert _list_hidden_rows("SELECT * FROM jsonb_to_recordset($1) AS s (a text)") == [""]
    assert _list_hidden_rows("SELECT * FROM jsonb_populate_record(NULL::disks, $2)") == ["disks"]
    assert _list_hidden_rows("SELECT * FROM gpu_types, jsonb_to_recordset(nodes) AS s (a text)") == []
    assert _decides("UPDATE disks SET name = CASE WHEN $1 THEN 'a' ELSE name END")
    assert _decides("SELECT CASE WHEN $1 THEN pgmq.delete('a', 1) END")
    assert not _decides("SELECT CASE WHEN updated THEN 1 END FROM disks")
    assert _list_numbered("SELECT $1, :name, '$x'") == ["$1"]
    text = "-- What it does.\n-- name: one\nSELECT 1;\n\n-- name: two\nSELECT 2;"
    assert _list_undescribed(text) == ["-- name: two"]


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


STATUS_SETS = [
    set(WAITING),
    set(PLACED),
    set(LIVE),
    set(ENGAGED),
    set(ENGAGED) - {Status.ACTIVE},
    set(DELETED),
    set(DELETED) - {DiskState.PURGED},
]
"""What a query may name several statuses for. A new status changes one of these, and then the queries."""


@pytest.mark.parametrize("noun, name", QUERIES)
def test_a_list_of_statuses_is_one_that_the_rules_know(noun: str, name: str) -> None:
    lists = re.findall(r"\b(?:status|state|\$\d+)\s+(?:NOT )?IN \(([^)]*)\)", load_queries(noun)[name])
    assert [found for found in lists if set(re.findall(r"'(\w+)'", found)) not in STATUS_SETS] == []


def test_every_channel_that_sql_notifies_has_a_listener() -> None:
    notified = {
        channel
        for noun in NOUNS
        for query in map(load_queries(noun).__getitem__, load_queries(noun))
        for channel in re.findall(r"pg_notify\('(\w+)'", query)
    }
    assert notified == {channel.value for channel in Channel}


REFUSING = {(table, "append_only") for table in ("audit_entries", "audit_seals", "audit_digests")}
"""Triggers that decide nothing: they refuse every change of the audit log."""


async def test_the_only_triggers_refuse_changes_of_the_audit_log(database: str) -> None:
    connection = await asyncpg.connect(database)
    try:
        assert await _list_triggers(connection) == REFUSING
        async with _undone(connection):
            await connection.execute(
                "CREATE TRIGGER more BEFORE UPDATE ON disks EXECUTE FUNCTION refuse_audit_change()"
            )
            assert await _list_triggers(connection) - REFUSING == {("disks", "more")}
    finally:
        await connection.close()


async def _list_triggers(connection: asyncpg.Connection) -> set[tuple[str, str]]:
    rows = await connection.fetch(
        "SELECT tgrelid::regclass::text AS relation, tgname FROM pg_trigger WHERE NOT tgisinternal"
    )
    return {(row["relation"], row["tgname"]) for row in rows}


@asynccontextmanager
async def _undone(connection: asyncpg.Connection) -> AsyncIterator[None]:
    """A transaction that changes nothing in the end."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield
    finally:
        await transaction.rollback()


COMPUTED = {
    "simulated": "of its type: `is_simulated` in `gpu_types`",
    "instance_type": "of its type: `instance_type` in `gpu_types`",
    "ssh_command": "made from the address, for the client that asks",
    "ssh_proxy_url": "a setting of the API",
    "nodes": "rows of `reservation_members`",
    "estimated_wait_minutes": "`estimated_start_at`, counted from the time of the question",
    "likely_start": "the columns `likely_from` and `likely_to`",
    "hint": "text that belongs to the reason",
    "jupyter_enabled": "not stored: Jupyter Lab is not offered yet",
    "secondary_users": "not stored: nobody can be added yet",
}
"""Fields of a reservation in the API that operators do not find in the view `reservations`, and why."""

OPERATORS_COLUMNS = {
    "reservations": {
        *(field.name for field in fields(JobDetail) if field.name not in COMPUTED),
        *("user_id", "username", "cancelled_at", "version", "likely_from", "likely_to"),
    },
    "gpu_types": {
        *("gpu_type", "instance_type", "max_gpus", "cpus", "memory_gb", "is_active", "is_simulated"),
        *("total_cluster_gpus", "available_gpus", "max_reservable", "full_nodes_available"),
        *("running_instances", "desired_capacity", "max_per_node", "last_availability_update"),
        "last_availability_updated_by",
    },
    "api_users": {"user_id", "username", "email", "created_at", "is_active"},
    "api_keys": {
        *("key_id", "user_id", "key_hash", "key_prefix", "created_at", "expires_at", "last_used_at"),
        *("is_active", "description"),
    },
    "disks": {
        *("size_gb", "ebs_volume_id", "in_use", "is_backing_up", "is_deleted", "reservation_id", "last_used"),
        *("operation_id", "operation_status", "operation_error", "latest_snapshot_content_s3"),
    },
}
"""What operators select; their queries outlive changes of the tables."""


@pytest.mark.parametrize("relation", OPERATORS_COLUMNS)
async def test_operators_find_the_columns_that_they_know(database: str, relation: str) -> None:
    connection = await asyncpg.connect(database)
    try:
        assert await _list_missing(connection, relation) == set()
        async with _undone(connection):
            column = min(OPERATORS_COLUMNS[relation])
            await connection.execute(f"ALTER TABLE {relation} RENAME COLUMN {column} TO other")
            assert await _list_missing(connection, relation) == {column}
    finally:
        await connection.close()


async def _list_missing(connection: asyncpg.Connection, relation: str) -> set[str]:
    return OPERATORS_COLUMNS[relation] - await _list_columns(connection, relation)


async def _list_columns(connection: asyncpg.Connection, relation: str) -> set[str]:
    rows = await connection.fetch(
        "SELECT attname FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped",
        relation,
    )
    return {row["attname"] for row in rows}


async def test_no_field_is_explained_that_operators_do_find(database: str) -> None:
    connection = await asyncpg.connect(database)
    try:
        columns = await _list_columns(connection, "reservations")
    finally:
        await connection.close()
    assert COMPUTED.keys() <= {field.name for field in fields(JobDetail)} - columns
