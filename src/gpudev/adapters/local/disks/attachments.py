"""Which dev server of this machine has which volume, by what is written down of the servers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gpudev.adapters.local.records import Records
from gpudev.domain.disk import VolumeId


def list_attached(state_dir: Path) -> Mapping[VolumeId, str]:
    """A server has its volume from the moment it is written down until its record is gone."""
    return {
        record.home.volume_id: record.name
        for record in Records(state_dir).list_records()
        if record.home is not None
    }
