"""The guarded write that every change of a reservation goes through, inside or outside a lease."""

from __future__ import annotations

from typing import Any

from gpudev.adapters.postgres.pool import Connection
from gpudev.adapters.postgres.queries import load_queries
from gpudev.adapters.postgres.rows import member_to_json
from gpudev.domain.plans.actions import Record

_SQL = load_queries("reservations")


async def write_record(connection: Connection, record: Record, lease_token: str | None) -> int | None:
    """Change + event + outcomes in one statement; the new version, or None if somebody moved first."""
    version: int | None = await connection.fetchval(_SQL["record"], *_values(record, lease_token))
    return version


def _values(record: Record, lease_token: str | None) -> tuple[Any, ...]:
    after, event = record.after, record.event
    return (
        after.id,
        record.before.version,
        lease_token,
        after.status,
        after.reason,
        after.detail,
        after.node,
        after.address.host if after.address else None,
        after.address.port if after.address else None,
        after.host_keys,
        after.placed_at,
        after.launched_at,
        after.expires_at,
        after.ended_at,
        after.cancelled_at,
        after.cleaned_at,
        after.queue_position,
        after.estimated_start_at,
        event.at,
        event.kind,
        event.reason,
        event.message,
        [outcome.operation_id for outcome in record.outcomes],
        [outcome.status for outcome in record.outcomes],
        [outcome.error for outcome in record.outcomes],
        record.concerns_admission,
        [member_to_json(member) for member in after.members[1:]] or None,
    )
