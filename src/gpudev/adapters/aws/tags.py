"""The tags by which EBS volumes and snapshots say whose they are.

`disk-name` is read as well as `disk_name`: earlier tools wrote it so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from gpudev.domain.disk import DiskId
from gpudev.domain.volume import DiskTags

USER = "gpu-dev-user"
NAME = "disk_name"
OLD_NAME = "disk-name"
ANY_NAME = "disk?name"
"""Both, as a filter of EC2."""
DISK_ID = "gpu-dev-disk-id"
DELETE_DATE = "delete-date"
TOKEN = "gpu-dev-token"  # noqa: S105 - names a request, guards nothing

Tag = Mapping[str, str]


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
