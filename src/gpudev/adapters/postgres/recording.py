"""The guarded write that every change of a reservation goes through, inside or outside a lease."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from gpudev.adapters.postgres.pool import Connection
from gpudev.adapters.postgres.queries import load_queries
from gpudev.adapters.postgres.rows import member_to_json
from gpudev.domain.plans.actions import Record
from gpudev.domain.reservation import Reservation

_SQL = load_queries("reservations")

MARKS = (
    "warned_minutes",
    "extension_error",
    "oom_count",
    "last_oom_at",
    "told_notices",
    "progress",
    "progress_at",
    "stale_since",
    "driven_at",
    "kept_until",
    "idle_warned_at",
    "idle_warning",
    "drain_warning",
    "outcome",
    "exit_code",
)
"""Columns, and fields of the same name, that say what the clock has done so far."""


async def write_record(connection: Connection, record: Record, lease_token: str | None) -> int | None:
    """Change + event + outcomes in one statement; the new version, or None if somebody moved first."""
    version: int | None = await connection.fetchval(_SQL["record"], *_values(record, lease_token))
    return version


def marks_of(reservation: Reservation) -> dict[str, Any]:
    """As one JSON value, since they always go together."""
    known = asdict(reservation.memory) | asdict(reservation.state)
    return {name: _plain(known[name]) for name in MARKS}


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _values(record: Record, lease_token: str | None) -> tuple[Any, ...]:
    after, event = record.after, record.event
    return (
        after.id,
        record.before.version,
        lease_token,
        after.state.status,
        after.state.reason,
        after.state.detail,
        after.node,
        after.address.host if after.address else None,
        after.address.port if after.address else None,
        after.host_keys,
        after.state.placed_at,
        after.state.launched_at,
        after.state.expires_at,
        after.state.ended_at,
        after.state.cancelled_at,
        after.state.cleaned_at,
        after.forecast.queue_position,
        after.forecast.estimated_start_at,
        event.at,
        event.kind,
        event.reason,
        event.message,
        [outcome.operation_id for outcome in record.outcomes],
        [outcome.status for outcome in record.outcomes],
        [outcome.error for outcome in record.outcomes],
        record.concerns_admission,
        [member_to_json(member) for member in after.location.members[1:]] or None,
        marks_of(after),
        after.location.port_slot or None,
    )
