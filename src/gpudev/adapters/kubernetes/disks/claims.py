"""Claims, volumes and snapshots of the API as values of the domain, and the tags that name their owner.

Pure. What is searched for is a label; a name that people chose is an annotation, since not every name can be
a label.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import floor

from gpudev.adapters.kubernetes.api_objects import (
    COMPONENT,
    FIELD_MANAGER,
    MANAGED_BY,
    Json,
    annotations_of,
    labels_of,
    name_of,
)
from gpudev.adapters.kubernetes.pod_status import read_time
from gpudev.domain.catalogue import parse_quantity
from gpudev.domain.disk import DiskId, SnapshotId, VolumeId
from gpudev.domain.errors import Defect
from gpudev.domain.volume import DiskTags, ObservedSnapshot, ObservedVolume, SnapshotPhase, VolumePhase
from gpudev.texts.fact import fact

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
_GIBIBYTE = 2**30
_ENDED = frozenset({"Succeeded", "Failed"})
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Asks for a volume on that node; the scheduler sets it for a claim that waits for its first pod."""


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


@dataclass(frozen=True, slots=True)
class ClaimContext:
    """What a claim is seen with."""

    volume: Json | None
    """Its PersistentVolume, once it has one."""
    holder: str
    """The pod that has it."""
    waits_for_pods: bool
    """Its class makes volumes only where there is a pod for them."""
    zone_label: str


def volume_from(claim: Json, around: ClaimContext) -> ObservedVolume:
    source = annotations_of(claim).get(SOURCE)
    is_blank = around.waits_for_pods and _has_nothing(claim)
    return ObservedVolume(
        volume_id=VolumeId(name_of(claim)),
        tags=tags_from(claim),
        size_gb=_size_of(claim),
        created_at=_created_at(claim),
        phase=_phase_of(claim, is_blank=is_blank),
        zone=zone_of(around.volume, around.zone_label) if around.volume else "",
        attached_to=around.holder,
        source_snapshot_id=SnapshotId(source) if source else None,
        is_blank=is_blank,
    )


def _has_nothing(claim: Json) -> bool:
    """Nothing was made for it yet, and nothing is to be copied."""
    is_pending = claim.get("status", {}).get("phase") == "Pending"
    annotations = annotations_of(claim)
    has_source = annotations.get(SOURCE) or claim["spec"].get("dataSource")
    waits = is_pending and not has_source and SELECTED_NODE not in annotations
    return waits and not claim["spec"].get("volumeName")


def _phase_of(claim: Json, *, is_blank: bool) -> VolumePhase:
    """A claim that somebody deletes is not to be relied on, though its bytes are kept."""
    if "deletionTimestamp" in claim["metadata"]:
        return VolumePhase.FAILED
    match claim.get("status", {}).get("phase"):
        case "Bound":
            return VolumePhase.READY
        case "Lost":
            return VolumePhase.FAILED
        case _:
            return VolumePhase.READY if is_blank else VolumePhase.MAKING


def _size_of(claim: Json) -> int:
    """What there is; before there is anything, what was asked for."""
    capacity = claim.get("status", {}).get("capacity") or {}
    asked = claim["spec"]["resources"]["requests"]["storage"]
    return floor(parse_quantity(capacity.get("storage", asked)) / _GIBIBYTE)


def zone_of(volume: Json, zone_label: str) -> str:
    """Where nodes must be that can mount it; empty if that is not said by this label, or in several ways."""
    required = (volume["spec"].get("nodeAffinity") or {}).get("required") or {}
    values = {
        value
        for term in required.get("nodeSelectorTerms") or ()
        for expression in term.get("matchExpressions") or ()
        if expression["key"] == zone_label and expression["operator"] == "In"
        for value in expression["values"]
    }
    return values.pop() if len(values) == 1 else ""


def snapshot_from(item: Json) -> ObservedSnapshot:
    status = item.get("status") or {}
    error = (status.get("error") or {}).get("message", "")
    phase = SnapshotPhase.FAILED if error else SnapshotPhase.PENDING
    size = status.get("restoreSize", "0")
    return ObservedSnapshot(
        snapshot_id=SnapshotId(name_of(item)),
        volume_id=VolumeId(labels_of(item).get(OF_VOLUME, "")),
        tags=tags_from(item),
        phase=SnapshotPhase.COMPLETED if status.get("readyToUse") is True else phase,
        started_at=read_time(status.get("creationTime")) or _created_at(item),
        size_gb=floor(parse_quantity(size) / _GIBIBYTE),
        token=annotations_of(item).get(TOKEN, ""),
        detail=fact("words", words=error) if error else None,
    )


def holders_of(pods: Iterable[Json]) -> Mapping[str, str]:
    """The pod that has each claim; one that has ended has let go of it."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for pod in pods:
        if pod.get("status", {}).get("phase") in _ENDED:
            continue
        for volume in pod["spec"].get("volumes") or ():
            if claim := volume.get("persistentVolumeClaim"):
                found[claim["claimName"]].append(f"pod {name_of(pod)}")
    return {claim: min(names) for claim, names in found.items()}


def _created_at(item: Json) -> datetime:
    created = read_time(item["metadata"].get("creationTimestamp"))
    if created is None:
        raise Defect("creation_time_missing", name=name_of(item))
    return created
