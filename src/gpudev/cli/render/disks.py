"""Disks in words and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpudev.cli.render.table import format_fields, format_table
from gpudev.cli.render.times import Now, format_moment
from gpudev.texts.vocabulary import DiskState
from gpudev.wire.disks import DiskInfo, SnapshotInfo

_STATES: Mapping[str, str] = {
    DiskState.CREATING: "being made",
    DiskState.AVAILABLE: "free",
    DiskState.ATTACHING: "being attached",
    DiskState.IN_USE: "in use",
    DiskState.RELEASING: "being given back",
    DiskState.SNAPSHOTTING: "snapshot under way",
    DiskState.SOFT_DELETED: "deleted",
    DiskState.PURGING: "being removed for good",
    DiskState.PURGED: "gone",
}


def format_disks(disks: Sequence[DiskInfo], now: Now, width: int | None = None) -> str:
    header = ("NAME", "SIZE", "STATE", "RESERVATION", "SNAPSHOTS", "LAST USED")
    return format_table(header, [_row(disk, now) for disk in disks], frozenset({1, 4}), width)


def format_disk(disk: DiskInfo, now: Now) -> str:
    """Everything known of one disk, a line each."""
    moments = (
        ("Made at", disk.created_at),
        ("Last used", disk.last_used),
        ("Last snapshot", disk.last_snapshot_at),
        ("Gone after", disk.delete_date),
    )
    fields: list[tuple[str, str | None]] = [
        ("Disk", disk.disk_name),
        ("State", _state(disk)),
        ("Size", f"{disk.size_gb} GB"),
        ("Used", disk.disk_size),
        ("Reservation", _id8(disk)),
        ("Snapshots", str(disk.snapshot_count)),
        *((name, format_moment(at, now) if at else None) for name, at in moments),
        ("Volume", disk.volume_id),
        ("Problem", disk.problem),
        (
            "Restore",
            f"gpu-dev disk restore {disk.disk_name}" if disk.state == DiskState.SOFT_DELETED else None,
        ),
    ]
    return format_fields([(name, value) for name, value in fields if value])


def format_snapshots(snapshots: Sequence[SnapshotInfo], now: Now, width: int | None = None) -> str:
    rows = [(each.snapshot_id, format_moment(each.created_at, now), each.volume_id) for each in snapshots]
    return format_table(("SNAPSHOT", "MADE AT", "VOLUME"), rows, width=width)


def format_progress(disk: DiskInfo) -> str:
    """How it stands while an operation of it goes on."""
    return f'Disk "{disk.disk_name}": {disk.problem or _state(disk)}'


def _row(disk: DiskInfo, now: Now) -> tuple[str, ...]:
    used = format_moment(disk.last_used, now) if disk.last_used else ""
    return disk.disk_name, f"{disk.size_gb} GB", _state(disk), _id8(disk), str(disk.snapshot_count), used


def _id8(disk: DiskInfo) -> str:
    return (disk.reservation_id or "")[:8]


def _state(disk: DiskInfo) -> str:
    waits = disk.state == DiskState.AVAILABLE and disk.reservation_id
    return "asked for" if waits else _STATES.get(disk.state, disk.state)
