"""What EC2 tells of volumes and snapshots, as values of the rules."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from gpudev.adapters.aws.tags import TOKEN, disk_tags_from, read_tags
from gpudev.domain.disk import SnapshotId, VolumeId
from gpudev.domain.volume import ObservedSnapshot, ObservedVolume, SnapshotPhase, VolumePhase
from gpudev.texts.fact import fact

_VOLUME_PHASES: Mapping[str, VolumePhase] = MappingProxyType(
    {
        "creating": VolumePhase.MAKING,
        "available": VolumePhase.READY,
        "in-use": VolumePhase.READY,
        "deleting": VolumePhase.FAILED,
        "deleted": VolumePhase.FAILED,
        "error": VolumePhase.FAILED,
    }
)
_SNAPSHOT_PHASES: Mapping[str, SnapshotPhase] = MappingProxyType(
    {
        "pending": SnapshotPhase.PENDING,
        "completed": SnapshotPhase.COMPLETED,
        "error": SnapshotPhase.FAILED,
        "recoverable": SnapshotPhase.FAILED,
        "recovering": SnapshotPhase.PENDING,
    }
)


def volume_from(value: Mapping[str, Any]) -> ObservedVolume:
    source = value.get("SnapshotId")
    return ObservedVolume(
        volume_id=VolumeId(value["VolumeId"]),
        tags=disk_tags_from(read_tags(value.get("Tags"))),
        size_gb=value["Size"],
        created_at=value["CreateTime"],
        phase=_VOLUME_PHASES.get(value["State"], VolumePhase.FAILED),
        zone=value["AvailabilityZone"],
        attached_to=_holder_of(value),
        source_snapshot_id=SnapshotId(source) if source else None,
    )


def snapshot_from(value: Mapping[str, Any]) -> ObservedSnapshot:
    tags = read_tags(value.get("Tags"))
    return ObservedSnapshot(
        snapshot_id=SnapshotId(value["SnapshotId"]),
        volume_id=VolumeId(value["VolumeId"]),
        tags=disk_tags_from(tags),
        phase=_SNAPSHOT_PHASES.get(value["State"], SnapshotPhase.FAILED),
        started_at=value["StartTime"],
        size_gb=value.get("VolumeSize", 0),
        token=tags.get(TOKEN, ""),
        detail=fact("words", words=words) if (words := value.get("StateMessage")) else None,
    )


def _holder_of(value: Mapping[str, Any]) -> str:
    """Attaching and detaching count: until AWS says detached, a machine may write."""
    held = (each for each in value.get("Attachments", ()) if each.get("State") != "detached")
    return next((str(each.get("InstanceId", "unknown")) for each in held), "")
