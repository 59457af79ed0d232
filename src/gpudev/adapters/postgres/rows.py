"""Rows to values: the one place that knows which column is which field."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from operator import itemgetter
from typing import Any

from gpudev.adapters.postgres.pool import Row
from gpudev.domain.disk import DiskId
from gpudev.domain.names import NodeName, ReservationId, UserId
from gpudev.domain.reservation import (
    Activity,
    Event,
    Forecast,
    Location,
    Memory,
    Reservation,
    Settings,
    Spec,
    State,
)
from gpudev.domain.server import Member, SshAddress
from gpudev.ports.store import StoredEvent
from gpudev.ports.users import User
from gpudev.texts.vocabulary import EventKind, Outcome, Reason, Status

_STATUSES = {status.value: status for status in Status}
_REASONS = {reason.value: reason for reason in Reason}
_OUTCOMES = {outcome.value: outcome for outcome in Outcome}

_OF_RANK_0: Mapping[str, Callable[[Row], Any]] = {
    "node": itemgetter("node_name"),
    "address": lambda row: SshAddress(row["node_ip"], row["node_port"]) if row["node_ip"] else None,
    "host_keys": lambda row: tuple(row["ssh_host_keys"]),
}
"""What a reservation tells of its first member, and for most of them that is the only one."""


def _members_from(row: Row) -> tuple[Member, ...]:
    first = {name: read(row) for name, read in _OF_RANK_0.items()}
    return (Member(**first), *map(_member_from_json, row["other_members"] or ())) if first["node"] else ()


def _member_from_json(value: Mapping[str, Any]) -> Member:
    address = SshAddress(**value["address"]) if value["address"] else None
    return Member(NodeName(value["node"]), address, tuple(value["host_keys"]))


_FIELDS: Mapping[str, Callable[[Row], Any]] = {
    "id": lambda row: ReservationId(str(row["reservation_id"])),
    "user_id": itemgetter("user_id"),
    "username": itemgetter("username"),
    "name": itemgetter("name"),
    "gpu_type": itemgetter("gpu_type"),
    "gpu_count": itemgetter("gpu_count"),
    "duration": itemgetter("duration"),
    "created_at": itemgetter("created_at"),
    "status": lambda row: _STATUSES[row["status"]],
    "reason": lambda row: _REASONS.get(row["reason"]),
    "detail": itemgetter("detail"),
    "env_vars": itemgetter("env_vars"),
    "ssh_public_keys": lambda row: tuple(row["ssh_public_keys"]),
    "client_version": itemgetter("cli_version"),
    "github_user": itemgetter("github_user"),
    "warning": itemgetter("warning"),
    "disk_id": lambda row: DiskId(str(row["disk_id"])) if row["disk_id"] else None,
    "disk_name": itemgetter("disk_name"),
    "volume_id": itemgetter("ebs_volume_id"),
    "node_count": itemgetter("node_count"),
    "members": _members_from,
    "image": itemgetter("image"),
    "port_slot": lambda row: row["port_slot"] or "",
    "queue_position": itemgetter("queue_position"),
    "estimated_start_at": itemgetter("estimated_start_at"),
    "planned_nodes": lambda row: tuple(map(NodeName, row["planned_nodes"])),
    "start_at": itemgetter("start_at"),
    "node_labels": itemgetter("node_labels"),
    "likely_start": lambda row: (row["likely_from"], row["likely_to"]) if row["likely_from"] else None,
    "last_queue_update": itemgetter("last_queue_update"),
    "placed_at": itemgetter("placed_at"),
    "launched_at": itemgetter("launched_at"),
    "expires_at": itemgetter("expires_at"),
    "ended_at": itemgetter("reservation_ended"),
    "cancelled_at": itemgetter("cancelled_at"),
    "cleaned_at": itemgetter("cleaned_at"),
    "last_updated": itemgetter("last_updated"),
    "version": itemgetter("version"),
    "warned_minutes": itemgetter("warned_minutes"),
    "told_notices": lambda row: None if row["told_notices"] is None else tuple(row["told_notices"]),
    "extension_error": itemgetter("extension_error"),
    "oom_count": itemgetter("oom_count"),
    "last_oom_at": itemgetter("last_oom_at"),
    "progress": itemgetter("progress"),
    "progress_at": itemgetter("progress_at"),
    "stale_since": itemgetter("stale_since"),
    "driven_at": itemgetter("driven_at"),
    "kept_until": itemgetter("kept_until"),
    "idle_warned_at": itemgetter("idle_warned_at"),
    "idle_warning": itemgetter("idle_warning"),
    "drain_warning": itemgetter("drain_warning"),
    "usage_at": itemgetter("usage_at"),
    "idle_since": itemgetter("idle_since"),
    "idle_words": itemgetter("idle_words"),
    "outcome": lambda row: _OUTCOMES.get(row["outcome"]),
    "exit_code": itemgetter("exit_code"),
}
"""How each field of a reservation is read from its row."""


_PARTS: Mapping[str, type[Any]] = {
    "spec": Spec,
    "settings": Settings,
    "state": State,
    "location": Location,
    "forecast": Forecast,
    "memory": Memory,
    "activity": Activity,
}


def reservation_from(row: Row) -> Reservation:
    parts = {
        name: kind(**{field.name: _FIELDS[field.name](row) for field in fields(kind)})
        for name, kind in _PARTS.items()
    }
    return Reservation(id=_FIELDS["id"](row), version=row["version"], **parts)


def member_to_json(member: Member) -> dict[str, Any]:
    return asdict(member)


def reservations_on(rows: Sequence[Row]) -> tuple[Reservation, ...]:
    """What the rows tell; a row without a reservation has only told of something else."""
    return tuple(reservation_from(row) for row in rows if row["reservation_id"] is not None)


def caller_from(rows: Sequence[Row]) -> User | None:
    """Who asks, in every row of a statement that finds that out; without a row the key is no good."""
    if not rows:
        return None
    row = rows[0]
    return User(UserId(row["caller_id"]), row["caller_name"], row["caller_is_active"], row["caller_identity"])


def event_from(row: Row) -> StoredEvent:
    event = Event(
        kind=EventKind(row["kind"]),
        message=row["message"],
        at=row["at"],
        reason=Reason(row["reason"]) if row["reason"] else None,
    )
    return StoredEvent(number=row["number"], event=event, elapsed=row["elapsed"])
