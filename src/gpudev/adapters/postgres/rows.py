"""Rows to values: the one place that knows which column is which field."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
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
from gpudev.texts.fact import Fact, find_fact, parse_fact
from gpudev.texts.vocabulary import EventKind, Outcome, Reason, Status

_STATUSES = {status.value: status for status in Status}
_REASONS = {reason.value: reason for reason in Reason}
_OUTCOMES = {outcome.value: outcome for outcome in Outcome}

Reader = Callable[[Row], Any]


def _members_from(row: Row) -> tuple[Member, ...]:
    columns = (row[f"member_{name}"] or () for name in ("nodes", "hosts", "ports", "keys"))
    return tuple(
        Member(
            NodeName(node), SshAddress(host, port) if host else None, tuple(keys.split("\n")) if keys else ()
        )
        for node, host, port, keys in zip(*columns, strict=True)
    )


def _list_facts(stored: Sequence[Any] | None) -> tuple[Fact, ...] | None:
    return None if stored is None else tuple(map(parse_fact, stored))


_NOT_AS_STORED: Mapping[str, Reader] = {
    "disk_id": lambda row: DiskId(str(row["disk_id"])) if row["disk_id"] else None,
    "ssh_public_keys": lambda row: tuple(row["ssh_public_keys"]),
    "status": lambda row: _STATUSES[row["status"]],
    "reason": lambda row: _REASONS.get(row["reason"]),
    "outcome": lambda row: _OUTCOMES.get(row["outcome"]),
    "members": _members_from,
    "port_slot": lambda row: row["port_slot"] or "",
    "planned_nodes": lambda row: tuple(map(NodeName, row["planned_nodes"])),
    "likely_start": lambda row: (row["likely_from"], row["likely_to"]) if row["likely_from"] else None,
    "told_notices": lambda row: _list_facts(row["told_notices"]),
    "warnings": lambda row: _list_facts(row["warning"]) or (),
    "signals": lambda row: find_fact(row["idle_words"]),
    "detail": lambda row: find_fact(row["detail"]),
    "extension_error": lambda row: find_fact(row["extension_error"]),
    "progress": lambda row: find_fact(row["progress"]),
    "idle_warning": lambda row: find_fact(row["idle_warning"]),
    "drain_warning": lambda row: find_fact(row["drain_warning"]),
}
"""Fields that are not simply the value of the column of their name."""

_PARTS: Mapping[str, type[Any]] = {
    "spec": Spec,
    "settings": Settings,
    "state": State,
    "location": Location,
    "forecast": Forecast,
    "memory": Memory,
    "activity": Activity,
}
_READERS: Mapping[str, Mapping[str, Reader]] = {
    part: {field.name: _NOT_AS_STORED.get(field.name, itemgetter(field.name)) for field in fields(kind)}
    for part, kind in _PARTS.items()
}


def reservation_from(row: Row) -> Reservation:
    parts = {
        part: kind(**{name: read(row) for name, read in _READERS[part].items()})
        for part, kind in _PARTS.items()
    }
    return Reservation(id=ReservationId(str(row["reservation_id"])), version=row["version"], **parts)


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
        fact=parse_fact(row["fact"]),
        at=row["at"],
        reason=Reason(row["reason"]) if row["reason"] else None,
    )
    return StoredEvent(number=row["number"], event=event, elapsed=row["elapsed"])
