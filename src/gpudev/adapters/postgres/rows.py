"""Rows to values: the one place that knows which column is which field."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

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
from gpudev.ports.reservations import StoredEvent
from gpudev.ports.users import User
from gpudev.texts.fact import Fact, parse_fact
from gpudev.texts.vocabulary import EventKind, Outcome, Reason, Status

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Part = TypeVar("_Part", bound="DataclassInstance")

_COLUMNS: Mapping[str, str] = {"warnings": "warning", "signals": "idle_words"}
"""The columns of fields that are called otherwise."""


def _list_facts(stored: Sequence[Any]) -> tuple[Fact, ...]:
    return tuple(map(parse_fact, stored))


_CONVERTED: Mapping[str, Callable[[Any], Any]] = {
    "disk_id": lambda value: DiskId(str(value)),
    "ssh_public_keys": tuple,
    "status": {status.value: status for status in Status}.__getitem__,
    "reason": {reason.value: reason for reason in Reason}.__getitem__,
    "outcome": {outcome.value: outcome for outcome in Outcome}.__getitem__,
    "told_notices": _list_facts,
    "warnings": _list_facts,
    "signals": parse_fact,
    "detail": parse_fact,
    "extension_error": parse_fact,
    "progress": parse_fact,
    "idle_warning": parse_fact,
    "drain_warning": parse_fact,
}
"""Fields that are not the value of their column; where that is null, they have their default."""


def _make_reader(kind: type[_Part]) -> Callable[[Row], _Part]:
    """What reads a part: each field from the column of its name.

    Every request reads reservations, most of them with little in their later parts. So the columns are taken
    at once, and a part of which nothing is stored is made once.
    """
    known = fields(kind)
    take = itemgetter(*(_COLUMNS.get(each.name, each.name) for each in known))
    blank = tuple(None if each.name in _CONVERTED else each.default for each in known)
    empty = None if MISSING in blank else kind()
    converted = [
        (place, _CONVERTED[each.name], each.default)
        for place, each in enumerate(known)
        if each.name in _CONVERTED
    ]

    def read(row: Row) -> _Part:
        stored = take(row)
        if stored == blank and empty is not None:
            return empty
        values = list(stored)
        for place, convert, default in converted:
            value = values[place]
            values[place] = default if value is None else convert(value)
        return kind(*values)

    return read


_read_spec = _make_reader(Spec)
_read_settings = _make_reader(Settings)
_read_state = _make_reader(State)
_read_memory = _make_reader(Memory)
_read_activity = _make_reader(Activity)


def reservation_from(row: Row) -> Reservation:
    return Reservation(
        id=ReservationId(str(row["reservation_id"])),
        spec=_read_spec(row),
        settings=_read_settings(row),
        state=_read_state(row),
        location=_read_location(row),
        forecast=_read_forecast(row),
        memory=_read_memory(row),
        activity=_read_activity(row),
        version=row["version"],
    )


def _read_location(row: Row) -> Location:
    return Location(
        members=_read_members(row) if row["member_node"] else (),
        port_slot=row["port_slot"] or "",
        volume_id=row["volume_id"],
    )


def _read_members(row: Row) -> tuple[Member, ...]:
    """Most reservations have one; the others of a gang are in an array."""
    first = _member_from(row["member_node"], row["member_host"], row["member_port"], row["member_keys"])
    others = row["other_members"]
    return (first, *(_member_from(**each) for each in others)) if others else (first,)


def _member_from(node: str, host: str | None, port: int | None, keys: Sequence[str]) -> Member:
    address = SshAddress(host, port) if host and port else None
    return Member(NodeName(node), address, tuple(keys))


_take_forecast = itemgetter(
    *("queue_position", "estimated_start_at", "planned_nodes", "likely_from", "likely_to"),
    "last_queue_update",
)


def _read_forecast(row: Row) -> Forecast:
    position, start_at, nodes, likely_from, likely_to, updated_at = _take_forecast(row)
    return Forecast(
        queue_position=position,
        estimated_start_at=start_at,
        planned_nodes=tuple(map(NodeName, nodes)) if nodes else (),
        likely_start=(likely_from, likely_to) if likely_from else None,
        last_queue_update=updated_at,
    )


def columns_of(part: DataclassInstance) -> dict[str, Any]:
    """The fields of a part that has a table of its own, as columns of a row."""
    return {each.name: getattr(part, each.name) for each in fields(part)}


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
