"""Ending every dev server of a state directory, for when no control plane is there to do it."""

from __future__ import annotations

from pathlib import Path

from gpudev.adapters.local.ending import end_server
from gpudev.adapters.local.records import Records
from gpudev.adapters.local.state_lock import StateLock


def stop_all_servers(state_dir: Path) -> int:
    """End them with all their processes and remove their records; homes stay. Says how many there were.

    Refused with `Conflict` while a control plane owns the directory: it would start them again.
    """
    if not state_dir.is_dir():
        return 0
    lock = StateLock(state_dir)
    lock.take()
    try:
        return _stop_all(Records(state_dir))
    finally:
        lock.release()


def _stop_all(records: Records) -> int:
    found = records.list_records()
    for record in found:
        end_server(record.name, records.files_of(record.key).find_processes())
        records.set_aside(record)
    records.sweep()
    return len({record.spec.reservation_id for record in found})
