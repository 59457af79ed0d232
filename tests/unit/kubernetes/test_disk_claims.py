"""What claims, volumes and snapshots of the API mean for disks."""

from __future__ import annotations

from typing import Any

import pytest

from gpudev.adapters.kubernetes.api_objects import Json
from gpudev.adapters.kubernetes.config import ZONE_LABEL, ClaimConfig
from gpudev.adapters.kubernetes.disks.claims import (
    SELECTED_NODE,
    ClaimContext,
    holders_of,
    snapshot_from,
    volume_from,
    zone_of,
)
from gpudev.adapters.kubernetes.manifests.storage import make_claim, make_snapshot
from gpudev.adapters.kubernetes.provisioner import is_left_over
from gpudev.domain.disk import DiskId, SnapshotId, VolumeId
from gpudev.domain.volume import DiskTags, SnapshotPhase, SnapshotSpec, VolumePhase, VolumeSpec
from tests.support.kubernetes_values import NAMESPACE, made

CONFIG = ClaimConfig(NAMESPACE, "fast", "fast-snapshots")
TAGS = DiskTags("ada", "_odd-name_", DiskId("d15c0000-0000-4000-8000-000000000001"))
SPEC = VolumeSpec("disk/first", TAGS, 100)


def claim(phase: str = "Bound", **changes: Any) -> Json:
    item = made(make_claim(SPEC, CONFIG, None))
    item["status"] = {"phase": phase, **changes}
    return item


def around(*, waits_for_pods: bool = True, **changes: Any) -> ClaimContext:
    values: dict[str, Any] = {"volume": None, "holder": "", "zone_label": ZONE_LABEL}
    return ClaimContext(waits_for_pods=waits_for_pods, **(values | changes))


def volume(*values: str, key: str = ZONE_LABEL) -> Json:
    expression = {"key": key, "operator": "In", "values": list(values)}
    return {
        "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}
    }


def test_what_was_said_of_a_claim_is_read_again() -> None:
    seen = volume_from(claim(capacity={"storage": "120Gi"}), around(holder="pod a"))
    assert seen.tags == TAGS
    assert (seen.size_gb, seen.attached_to, seen.phase) == (120, "pod a", VolumePhase.READY)


@pytest.mark.parametrize(
    "phase, waits_for_pods, node, expected, is_blank",
    [
        ("Bound", True, "", VolumePhase.READY, False),
        ("Lost", True, "", VolumePhase.FAILED, False),
        ("Pending", True, "", VolumePhase.READY, True),
        ("Pending", True, "node-a", VolumePhase.MAKING, False),
        ("Pending", False, "", VolumePhase.MAKING, False),
    ],
)
def test_a_claim_is_blank_only_while_nothing_was_made_for_it(
    *, phase: str, waits_for_pods: bool, node: str, expected: VolumePhase, is_blank: bool
) -> None:
    item = claim(phase)
    if node:
        item["metadata"]["annotations"][SELECTED_NODE] = node
    seen = volume_from(item, around(waits_for_pods=waits_for_pods))
    assert (seen.phase, seen.is_blank) == (expected, is_blank)


def test_a_claim_with_a_volume_is_never_blank_whatever_its_status_says() -> None:
    """A status may be late; nobody may take what has bytes for something that has none."""
    item = claim("Pending")
    item["spec"]["volumeName"] = "pvc-1"
    assert not volume_from(item, around()).is_blank


def test_a_copy_is_never_blank() -> None:
    source = VolumeSpec("disk/copy", TAGS, 100, source_snapshot_id=SnapshotId("snap"))
    item = {**made(make_claim(source, CONFIG, None)), "status": {"phase": "Pending"}}
    assert volume_from(item, around()).phase is VolumePhase.MAKING


def test_a_claim_that_is_being_deleted_is_not_relied_on() -> None:
    item = claim()
    item["metadata"]["deletionTimestamp"] = "2030-01-01T12:00:00Z"
    assert volume_from(item, around()).phase is VolumePhase.FAILED


@pytest.mark.parametrize(
    "found, zone",
    [
        (volume("zone-1"), "zone-1"),
        (volume("zone-1", "zone-2"), ""),
        (volume("node-a", key="kubernetes.io/hostname"), ""),
        ({"spec": {}}, ""),
    ],
)
def test_a_volume_is_in_a_zone_if_it_says_one(found: Json, zone: str) -> None:
    assert zone_of(found, ZONE_LABEL) == zone


def test_a_pod_that_has_ended_holds_nothing() -> None:
    def pod(name: str, phase: str) -> Json:
        home = {"name": "home", "persistentVolumeClaim": {"claimName": name}}
        return {"metadata": {"name": name}, "spec": {"volumes": [home]}, "status": {"phase": phase}}

    phases = ("Pending", "Running", "Succeeded", "Failed")
    assert holders_of(pod(phase.lower(), phase) for phase in phases) == {
        "pending": "pod pending",
        "running": "pod running",
    }


@pytest.mark.parametrize(
    "status, phase",
    [
        (None, SnapshotPhase.PENDING),
        ({"readyToUse": False}, SnapshotPhase.PENDING),
        ({"readyToUse": False, "error": {"message": "no space"}}, SnapshotPhase.FAILED),
        ({"readyToUse": True, "restoreSize": "100Gi"}, SnapshotPhase.COMPLETED),
    ],
)
def test_a_snapshot_is_complete_only_when_it_can_be_used(status: Json | None, phase: SnapshotPhase) -> None:
    item = made(make_snapshot(SnapshotSpec("disk/1", VolumeId("volume-1"), TAGS), CONFIG, ""))
    seen = snapshot_from({**item, "status": status} if status else item)
    assert (seen.phase, seen.tags, seen.token, seen.volume_id) == (phase, TAGS, "disk/1", "volume-1")


@pytest.mark.parametrize(
    "phase, policy, is_taken_away",
    [("Released", "Retain", True), ("Released", "Delete", False), ("Bound", "Retain", False)],
)
def test_a_persistent_volume_is_taken_away_only_if_its_bytes_stay(
    *, phase: str, policy: str, is_taken_away: bool
) -> None:
    found = {"spec": {"persistentVolumeReclaimPolicy": policy}, "status": {"phase": phase}}
    assert is_left_over(found) is is_taken_away
