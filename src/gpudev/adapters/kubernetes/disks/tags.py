"""How claims and snapshots say whose they are.

What is looked for is a label; a name that people chose is an annotation, since not every name can be a label.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from gpudev.adapters.kubernetes.labels import (
    COMPONENT,
    FIELD_MANAGER,
    MANAGED_BY,
    Json,
    annotations_of,
    labels_of,
)
from gpudev.domain.disk import DiskId
from gpudev.domain.volume import DiskTags

VOLUME = "disk-volume"
SNAPSHOT = "disk-snapshot"
"""Values of the component label."""

DISK = "gpu-dev/disk"
OF_VOLUME = "gpu-dev/volume"
"""On a snapshot: the claim that it was made of."""
USER = "gpu-dev/user"
NAME = "gpu-dev/disk-name"
DELETE_DATE = "gpu-dev/delete-date"
TOKEN = "gpu-dev/token"  # noqa: S105 - names a request, guards nothing
SOURCE = "gpu-dev/source-snapshot"
ZONE = "gpu-dev/zone"
"""On a snapshot: where its volume was."""


def labels_for(component: str, disk_id: DiskId | None) -> dict[str, str]:
    return {MANAGED_BY: FIELD_MANAGER, COMPONENT: component, **({DISK: disk_id} if disk_id else {})}


def is_of(component: str, item: Json) -> bool:
    labels = labels_of(item)
    return labels.get(MANAGED_BY) == FIELD_MANAGER and labels.get(COMPONENT) == component


def annotations_for(tags: DiskTags) -> dict[str, str]:
    named = {USER: tags.username, NAME: tags.disk_name}
    return named | ({DELETE_DATE: tags.delete_date.isoformat()} if tags.delete_date else {})


def patch_for(tags: DiskTags) -> Json:
    """As a merge patch: the date goes where there is none any more."""
    date = tags.delete_date.isoformat() if tags.delete_date else None
    return {
        "metadata": {
            "labels": {DISK: tags.disk_id},
            "annotations": {USER: tags.username, NAME: tags.disk_name, DELETE_DATE: date},
        }
    }


def tags_from(item: Json) -> DiskTags | None:
    """None without a user and a name: then nobody can say whose it is."""
    annotations = annotations_of(item)
    username, name = annotations.get(USER), annotations.get(NAME)
    if not username or not name:
        return None
    disk_id = labels_of(item).get(DISK)
    return DiskTags(username, name, DiskId(disk_id) if disk_id else None, _date_from(annotations))


def name_from(kind: str, token: str) -> str:
    """The same token gives the same name, so that what was made before a crash is found again."""
    return f"gpu-dev-{kind}-{uuid.uuid5(uuid.NAMESPACE_URL, f'gpu-dev/{kind}/{token}').hex[:20]}"


def _date_from(annotations: object) -> datetime | None:
    text = annotations.get(DELETE_DATE) if isinstance(annotations, dict) else None
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
