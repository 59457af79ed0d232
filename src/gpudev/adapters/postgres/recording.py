"""The guarded writes of a reservation: one statement for each part that has changed, all or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

from gpudev.adapters.postgres.operations import settle
from gpudev.adapters.postgres.pool import Connection
from gpudev.adapters.postgres.queries import load_queries
from gpudev.domain.plans.turn import Record
from gpudev.domain.reservation import Reservation
from gpudev.domain.server import Member
from gpudev.texts.vocabulary import Status

_SQL = load_queries("reservations")
_ADMISSIONS = load_queries("admissions")
_DISKS = load_queries("disks")

Statement = tuple[Any, ...]
"""A query and its values."""


async def write_record(
    connection: Connection, record: Record, stored: Reservation, lease_token: str | None
) -> int | None:
    """State and event, then what else is not as it is stored, all or nothing.

    The new version, or None if somebody moved first. A plan may have come to its change in steps, so
    `record.before` need not be what is stored.
    """
    others = list(_list_others(record, stored))
    remembers = record.after.memory != stored.memory
    is_alone = not (others or remembers) or connection.is_in_transaction()
    async with nullcontext() if is_alone else connection.transaction():
        version: int | None = await connection.fetchval(*_write_state(record, lease_token))
        if version is None:
            return None
        if remembers:
            await connection.execute(*write_memory(record.after, version, None))
        for statement in others:
            await connection.execute(*statement)
    return version


def write_memory(after: Reservation, version: int, lease_token: str | None) -> Statement:
    """All of it; the version is the one that the reservation has now."""
    memory = after.memory
    return _SQL.bind(
        "write_memory",
        id=after.id,
        version=version,
        lease_token=lease_token,
        warned_minutes=memory.warned_minutes,
        told_notices=memory.told_notices,
        extension_error=memory.extension_error,
        oom_count=memory.oom_count,
        last_oom_at=memory.last_oom_at,
        progress=memory.progress,
        progress_at=memory.progress_at,
        stale_since=memory.stale_since,
        driven_at=memory.driven_at,
        kept_until=memory.kept_until,
        idle_warned_at=memory.idle_warned_at,
        idle_warning=memory.idle_warning,
        drain_warning=memory.drain_warning,
    )


def _write_state(record: Record, lease_token: str | None) -> Statement:
    after, state, event = record.after, record.after.state, record.event
    return _SQL.bind(
        "write_state",
        id=after.id,
        version=record.before.version,
        lease_token=lease_token,
        status=state.status,
        reason=state.reason,
        detail=state.detail,
        placed_at=state.placed_at,
        launched_at=state.launched_at,
        expires_at=state.expires_at,
        ended_at=state.ended_at,
        cleaned_at=state.cleaned_at,
        port_slot=after.location.port_slot,
        at=event.at,
        event_kind=event.kind,
        event_reason=event.reason,
        event_fact=event.fact,
    )


def _list_others(record: Record, stored: Reservation) -> Iterator[Statement]:
    after = record.after
    if after.state.stopped_at is not None and after.state.stopped_at != stored.state.stopped_at:
        yield _end_run(after, stored)
    if after.spec != stored.spec:
        yield _write_spec(after)
    if after.location.members != stored.location.members:
        yield _write_members(after)
    if after.location.volume_id != stored.location.volume_id:
        yield _SQL.bind("write_volume", id=after.id, volume_id=after.location.volume_id)
    if after.state.outcome != stored.state.outcome:
        yield _SQL.bind(
            "write_outcome", id=after.id, outcome=after.state.outcome, exit_code=after.state.exit_code
        )
    # Admission writes forecasts without a new version, so there may be one that was not read.
    if after.forecast != stored.forecast or (stored.is_waiting and not after.is_waiting):
        yield _SQL.bind("clear_forecast", id=after.id)
    yield from _list_consequences(record, stored)


def _list_consequences(record: Record, stored: Reservation) -> Iterator[Statement]:
    """What others have to know of it."""
    after = record.after
    if after.state.status is Status.PREPARING and stored.is_waiting:
        yield _SQL.bind("start_forecast", id=after.id, at=record.event.at)
    if record.outcomes:
        yield settle(record.outcomes, record.event.at)
    if after.spec.disk_id is not None and not after.is_placed:
        yield _SQL.bind("wake_disk", id=after.id)
    if after.spec.disk_id is not None and stored.is_waiting and after.is_ended:
        yield _DISKS.bind("wake_admission", id=after.spec.disk_id)
    if record.concerns_admission:
        yield _ADMISSIONS.bind("wake", gpu_type=after.spec.gpu_type)


def _end_run(after: Reservation, stored: Reservation) -> Statement:
    return _SQL.bind(
        "end_run",
        id=stored.id,
        user_id=stored.spec.user_id,
        gpu_type=stored.spec.gpu_type,
        gpu_count=stored.spec.gpu_count,
        requested_at=stored.waits_since,
        launched_at=stored.state.launched_at,
        expires_at=stored.state.expires_at,
        ended_at=after.state.stopped_at,
        used=after.state.used,
    )


def _write_spec(after: Reservation) -> Statement:
    spec = after.spec
    return _SQL.bind(
        "write_spec",
        id=after.id,
        gpu_type=spec.gpu_type,
        gpu_count=spec.gpu_count,
        node_count=spec.node_count,
        node_labels=dict(spec.node_labels),
        duration=spec.duration,
        start_at=spec.start_at,
        warning=list(spec.warnings),
        requested_at=spec.requested_at,
        stopped_at=after.state.stopped_at,
    )


def _write_members(after: Reservation) -> Statement:
    members = after.location.members
    addresses = [member.address for member in members]
    return _SQL.bind(
        "write_members",
        id=after.id,
        nodes=[member.node for member in members],
        hosts=[address.host if address else None for address in addresses],
        ports=[address.port if address else None for address in addresses],
        keys=[_join_keys(member) for member in members],
    )


def _join_keys(member: Member) -> str:
    return "\n".join(member.host_keys)
