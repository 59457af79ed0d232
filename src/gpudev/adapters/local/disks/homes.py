"""Where the home of a dev server is: on its disk, or a folder of this server's own."""

from __future__ import annotations

from pathlib import Path

from gpudev.adapters.local.disks.folders import home_of_volume
from gpudev.adapters.local.record import Record
from gpudev.adapters.local.records import Records


def find_home(state_dir: Path, record: Record) -> Path:
    disk = record.home
    return home_of_volume(state_dir, disk.volume_id) if disk else Records(state_dir).home_of(record.key)
