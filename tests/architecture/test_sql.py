"""SQL and Python say the same: every query fits the schema, every CHECK fits its enum."""

from __future__ import annotations

import re
from enum import StrEnum
from importlib.resources import files

import asyncpg
import pytest

from gpudev.adapters.postgres.queries import NOUNS, load_queries, read_sql
from gpudev.domain.audit import AuditOutcome
from gpudev.domain.disk import DELETED
from gpudev.ports.queue import Channel
from gpudev.texts.vocabulary import (
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


NUMBERED = {
    "disk_ledger": "is being rewritten",
    "disks": "is being rewritten",
    "reservations": "is being rewritten",
}
"""Files that still have parameters by number, and why. No file is added."""


@pytest.mark.parametrize("noun", NOUNS)
def test_parameters_have_names(noun: str) -> None:
    numbered = _list_numbered(read_sql(noun))
    assert bool(numbered) == (noun in NUMBERED), numbered


def _list_numbered(text: str) -> list[str]:
    return re.findall(r"\$\d+", text)


@pytest.mark.parametrize("noun", sorted(set(NOUNS) - NUMBERED.keys()))
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


def test_what_these_tests_find() -> None:
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
    set(LIVE) - {Status.ACTIVE},
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
