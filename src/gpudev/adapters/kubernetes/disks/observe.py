"""From claims, volumes and snapshots of the API to values of the rules: pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import floor

from gpudev.adapters.kubernetes.disks.tags import OF_VOLUME, SOURCE, TOKEN, tags_from
from gpudev.adapters.kubernetes.labels import Json, annotations_of, labels_of, name_of
from gpudev.adapters.kubernetes.pod_status import read_time
from gpudev.domain.catalogue import parse_quantity
from gpudev.domain.disk import SnapshotId, VolumeId
from gpudev.domain.errors import Defect
from gpudev.domain.volume import ObservedSnapshot, ObservedVolume, SnapshotPhase, VolumePhase
from gpudev.texts.fact import fact

_GIBIBYTE = 2**30
_ENDED = frozenset({"Succeeded", "Failed"})
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Asks for a volume on that node; the scheduler sets it for a claim that waits for its first pod."""


@dataclass(frozen=True, slots=True)
class Around:
    """What a claim is seen with."""

    volume: Json | None
    """Its PersistentVolume, once it has one."""
    holder: str
    """The pod that has it."""
    waits_for_pods: bool
    """Its class makes volumes only where there is a pod for them."""
    zone_label: str


def volume_from(claim: Json, around: Around) -> ObservedVolume:
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
