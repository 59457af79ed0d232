"""`schema.sql`, which people read, is what the migrations, which are applied, add up to."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import groupby

import asyncpg
import pytest

from gpudev.adapters.postgres.migrate import read_pgmq_sql

pytestmark = pytest.mark.anyio

Catalogue = dict[str, str]
"""What the database says of each object, by the object's kind and name."""

SCHEMA = files("gpudev.adapters.postgres").joinpath("sql", "schema.sql").read_text(encoding="utf-8")

_RELATIONS = "pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'public'"
_READ = f"""
SELECT 'relation ' || c.relname,
       concat_ws(' ', c.relkind, c.relpersistence, c.reloptions, c.relrowsecurity,
                 obj_description(c.oid, 'pg_class'))
FROM {_RELATIONS} WHERE c.relkind IN ('r', 'v', 'm', 'p', 'S')
UNION ALL
SELECT 'column ' || c.relname || '.' || a.attname,
       concat_ws(' ', format_type(a.atttypid, a.atttypmod), 'not null: ' || a.attnotnull::text,
                 'identity: ' || a.attidentity::text,
                 'generated: ' || a.attgenerated::text, 'default: ' || pg_get_expr(d.adbin, d.adrelid),
                 'comment: ' || col_description(c.oid, a.attnum))
FROM {_RELATIONS} JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relkind IN ('r', 'v', 'm', 'p')
UNION ALL
SELECT 'constraint ' || c.relname || '.' || o.conname, pg_get_constraintdef(o.oid)
FROM {_RELATIONS} JOIN pg_constraint o ON o.conrelid = c.oid AND o.contype <> 'n'
UNION ALL
SELECT 'index ' || c.relname, pg_get_indexdef(c.oid) FROM {_RELATIONS} WHERE c.relkind = 'i'
UNION ALL
SELECT 'view ' || c.relname, pg_get_viewdef(c.oid, true) FROM {_RELATIONS} WHERE c.relkind IN ('v', 'm')
UNION ALL
SELECT 'trigger ' || c.relname || '.' || t.tgname, pg_get_triggerdef(t.oid)
FROM {_RELATIONS} JOIN pg_trigger t ON t.tgrelid = c.oid AND NOT t.tgisinternal
UNION ALL
SELECT 'function ' || p.oid::regprocedure::text,
       concat(pg_get_functiondef(p.oid), obj_description(p.oid, 'pg_proc'))
FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace
UNION ALL
SELECT 'type ' || t.typname, t.typtype::text FROM pg_type t
WHERE t.typnamespace = 'public'::regnamespace AND t.typtype IN ('d', 'e', 'r')
UNION ALL
SELECT 'queue ' || queue_name, concat_ws(' ', is_partitioned, is_unlogged) FROM pgmq.meta
"""  # noqa: S608 - no values
_PLAIN_COLUMN = re.compile(r" *\w+\.\w+,?")


def _ignore_order(definition: str) -> str:
    """A view without the order of its plain columns: `SELECT r.*` follows that of the table."""
    lines = definition.replace(" SELECT ", " SELECT\n").splitlines()
    runs = groupby(lines, key=lambda line: bool(_PLAIN_COLUMN.fullmatch(line)))
    return "\n".join(
        line
        for is_plain, run in runs
        for line in (sorted(one.strip(" ,") for one in run) if is_plain else list(run))
    )


async def _read(connection: asyncpg.Connection) -> Catalogue:
    return {
        name: _ignore_order(said) if name.startswith("view ") else said
        for name, said in await connection.fetch(_READ)
    }


async def _read_migrated(dsn: str) -> Catalogue:
    connection = await asyncpg.connect(dsn)
    try:
        return await _read(connection)
    finally:
        await connection.close()


async def _read_applied(dsn: str, schema: str) -> Catalogue:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(read_pgmq_sql().decode())
        await connection.execute(schema)
        return await _read(connection)
    finally:
        await connection.close()


def _differences(shown: Catalogue, migrated: Catalogue) -> list[str]:
    return [
        f"{name}: schema.sql has {shown.get(name)}, the migrations have {migrated.get(name)}"
        for name in sorted(shown.keys() | migrated.keys())
        if shown.get(name) != migrated.get(name)
    ]


async def test_the_schema_is_the_sum_of_the_migrations(database: str, empty_database: str) -> None:
    shown = await _read_applied(empty_database, SCHEMA)
    assert _differences(shown, await _read_migrated(database)) == []


CHANGES = {
    ("email       text,", "email       varchar,"): "column api_users.email",
    ("aws_role     text,", "aws_role     text NOT NULL,"): "column api_users.aws_role",
    (
        "defects       integer NOT NULL DEFAULT 0",
        "defects integer NOT NULL DEFAULT 1",
    ): "column turns.defects",
    ("    description    text,\n", ""): "column api_keys.description",
    ("OR state = 'snapshotting'", ""): "column disks.is_backing_up",
    ("'Time since the event before'", "'Time'"): "column reservation_events.elapsed",
    ("(kind IN ('webhook', 'slack'))", "(kind = 'slack')"): (
        "constraint notification_targets.notification_targets_kind"
    ),
    ("INCLUDE (status, gpu_type)", "INCLUDE (status)"): "index reservations_of_user",
    ("WHERE k.is_active;", ";"): "view callers",
    ("is append-only", "is kept"): "function refuse_audit_change()",
    ("TRUNCATE ON audit_seals", "INSERT ON audit_seals"): "trigger audit_seals.append_only",
    ("WITH (fillfactor = 50)", ""): "relation reservation_counts",
    ("SELECT pgmq.create('notifications'),", "SELECT pgmq.create('notifications'), pgmq.create('more'),"): (
        "queue more"
    ),
}
"""Texts of the schema, what takes their place, and the object that differs then."""


async def test_every_kind_of_difference_is_found(database: str, empty_database: str) -> None:
    changed = SCHEMA
    for old, new in CHANGES:
        assert changed.count(old) == 1, old
        changed = changed.replace(old, new)
    shown = await _read_applied(empty_database, changed)
    found = _differences(shown, await _read_migrated(database))
    assert {line.partition(": ")[0] for line in found} == set(CHANGES.values())
