"""What EC2 says of volumes and snapshots, as values of the domain, and the tags that name their owner.

`disk-name` is read as well as `disk_name`: earlier tools wrote it so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from gpudev.domain.disk import DiskId, SnapshotId, VolumeId
from gpudev.domain.volume import DiskTags, ObservedSnapshot, ObservedVolume, SnapshotPhase, VolumePhase
from gpudev.texts.fact import fact

USER = "gpu-dev-user"
NAME = "disk_name"
OLD_NAME = "disk-name"
ANY_NAME = "disk?name"
"""Both, as a filter of EC2."""
DISK_ID = "gpu-dev-disk-id"
DELETE_DATE = "delete-date"
TOKEN = "gpu-dev-token"  # noqa: S105 - names a request, guards nothing

Tag = Mapping[str, str]
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


def read_tags(tags: Iterable[Tag] | None) -> dict[str, str]:
    return {tag["Key"]: tag.get("Value", "") for tag in tags or ()}


def disk_tags_from(tags: Mapping[str, str]) -> DiskTags | None:
    """None without a user and a name: then nobody can say whose it is."""
    username, name = tags.get(USER), tags.get(NAME) or tags.get(OLD_NAME)
    if not username or not name:
        return None
    disk_id = tags.get(DISK_ID)
    return DiskTags(username, name, DiskId(disk_id) if disk_id else None, _date_from(tags.get(DELETE_DATE)))


def tags_to_aws(tags: DiskTags, **more: str) -> list[dict[str, str]]:
    named = {USER: tags.username, NAME: tags.disk_name, "Name": f"gpu-dev {tags.username} {tags.disk_name}"}
    if tags.disk_id:
        named[DISK_ID] = tags.disk_id
    if tags.delete_date:
        named[DELETE_DATE] = tags.delete_date.isoformat()
    return [{"Key": key, "Value": value} for key, value in {**named, **more}.items()]


def outdated_keys(tags: DiskTags) -> Sequence[dict[str, Any]]:
    """Tags that must not stay beside these."""
    return [{"Key": OLD_NAME}, *([] if tags.delete_date else [{"Key": DELETE_DATE}])]


def _date_from(text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


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
