"""Reservations by the names of their fields, whichever part each belongs to: short cases stay short."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from gpudev.domain.disk import Disk, DiskSpec, DiskVolume, Snapshots
from gpudev.domain.reservation import (
    Activity,
    Forecast,
    Location,
    Memory,
    Reservation,
    Settings,
    Spec,
    State,
)
from tests.support.words import told_as

_PARTS: dict[str, type[Any]] = {
    "spec": Spec,
    "settings": Settings,
    "state": State,
    "location": Location,
    "forecast": Forecast,
    "memory": Memory,
    "activity": Activity,
}
PART_OF = {field.name: part for part, kind in _PARTS.items() for field in fields(kind)}


def build(**values: Any) -> Reservation:
    """`build(id=..., gpu_type=..., status=...)`."""
    own, parts = _sort(values, PART_OF)
    return Reservation(**own, **{part: kind(**parts.get(part, {})) for part, kind in _PARTS.items()})


def change(reservation: Reservation, **values: Any) -> Reservation:
    """`change(reservation, status=..., expires_at=...)`."""
    own, parts = _sort(values, PART_OF)
    changed = {part: replace(getattr(reservation, part), **of_part) for part, of_part in parts.items()}
    return replace(reservation, **own, **changed)


_FACTS = {"detail", "extension_error", "progress", "idle_warning", "drain_warning", "signals"}
"""Given as words, for short."""


def _read(name: str, value: Any) -> Any:
    return told_as(value) if name in _FACTS and isinstance(value, str) else value


def _sort(
    values: dict[str, Any], part_of: dict[str, str]
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    own = {name: value for name, value in values.items() if name not in part_of}
    parts: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        if name in part_of:
            parts.setdefault(part_of[name], {})[name] = _read(name, value)
    return own, parts


_DISK_PARTS: dict[str, type[Any]] = {"spec": DiskSpec, "volume": DiskVolume, "snapshots": Snapshots}
DISK_PART_OF = {field.name: part for part, kind in _DISK_PARTS.items() for field in fields(kind)}


def build_disk(**values: Any) -> Disk:
    """`build_disk(id=..., name=..., state=...)`."""
    own, parts = _sort(values, DISK_PART_OF)
    return Disk(**own, **{part: kind(**parts.get(part, {})) for part, kind in _DISK_PARTS.items()})


def change_disk(disk: Disk, **values: Any) -> Disk:
    """`change_disk(disk, zone=..., state=...)`."""
    own, parts = _sort(values, DISK_PART_OF)
    changed = {part: replace(getattr(disk, part), **of_part) for part, of_part in parts.items()}
    return replace(disk, **own, **changed)
