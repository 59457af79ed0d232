"""Short ways to make disks and what a storage has of them, and strategies for all that could be."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from gpudev.domain.disk import (
    DELETED,
    HELD,
    SOFT_DELETE_LASTS,
    Disk,
    DiskId,
    DiskOperation,
    SnapshotId,
    VolumeId,
)
from gpudev.domain.names import OperationId, UserId
from gpudev.domain.plans.disk_turn import DiskObservation, snapshot_token
from gpudev.domain.volume import (
    Holdings,
    ObservedSnapshot,
    ObservedVolume,
    SnapshotPhase,
    VolumePhase,
    tags_of,
)
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import DiskOperationKind, DiskState, Status
from tests.support.domain_values import HOUR, NOW, make_id, make_reservation
from tests.support.parts import build_disk

DISK_ID = DiskId("d15c0000-0000-4000-8000-000000000001")
VOLUMES = [VolumeId(f"vol-{number}") for number in range(3)]
SNAPSHOTS = [SnapshotId(f"snap-{number}") for number in range(7)]
HOLDER = make_id(1)


def make_disk(state: DiskState = DiskState.AVAILABLE, **changes: Any) -> Disk:
    """A disk as it can be in this state."""
    values: dict[str, Any] = {
        "id": DISK_ID,
        "user_id": UserId(1),
        "username": "ada",
        "name": "default",
        "size_gb": 100,
        "created_at": NOW - 90 * 24 * HOUR,
        "state": state,
        "volume_id": VOLUMES[0],
        "zone": "a",
    }
    if state is DiskState.CREATING:
        values |= {"volume_id": None}
    if state in HELD:
        values |= {"reservation_id": HOLDER}
    if state in DELETED:
        values |= {"deleted_at": NOW - HOUR, "delete_date": NOW - HOUR + SOFT_DELETE_LASTS}
    return build_disk(**(values | changes))


def make_volume(disk: Disk, number: int = 0, **changes: Any) -> ObservedVolume:
    values: dict[str, Any] = {
        "volume_id": VOLUMES[number],
        "tags": tags_of(disk),
        "size_gb": disk.spec.size_gb,
        "created_at": disk.spec.created_at,
        "zone": "a",
    }
    return ObservedVolume(**(values | changes))


def make_snapshot(disk: Disk, number: int = 0, **changes: Any) -> ObservedSnapshot:
    values: dict[str, Any] = {
        "snapshot_id": SNAPSHOTS[number],
        "volume_id": VOLUMES[0],
        "tags": tags_of(disk),
        "phase": SnapshotPhase.COMPLETED,
        "started_at": NOW - HOUR * (number + 1),
    }
    return ObservedSnapshot(**(values | changes))


def observe(disk: Disk, **changes: Any) -> DiskObservation:
    """The disk with its volume, unless told otherwise."""
    has_volume = disk.volume.volume_id is not None
    values: dict[str, Any] = {
        "disk": disk,
        "holdings": Holdings((make_volume(disk),) if has_volume else ()),
        "now": NOW,
    }
    return DiskObservation(**(values | changes))


def make_operation(kind: DiskOperationKind, **changes: Any) -> DiskOperation:
    return DiskOperation(OperationId(f"operation-{kind}"), kind, NOW, **changes)


@st.composite
def observations(draw: st.DrawFn) -> DiskObservation:
    """Anything that could be read of a disk, also what should never be."""
    state = draw(st.sampled_from(DiskState))
    disk = make_disk(
        state,
        volume_id=draw(st.sampled_from([None, *VOLUMES])),
        is_dirty=draw(st.booleans()),
        snapshot_number=draw(st.integers(0, 2)),
        source_disk_id=draw(st.sampled_from([None, DiskId("other")])),
        source_snapshot_id=draw(st.sampled_from([None, SnapshotId("snap-of-other")])),
        released_at=draw(st.sampled_from([None, NOW, NOW - HOUR])),
        delete_date=draw(st.sampled_from([None, NOW - HOUR, NOW, NOW + HOUR])) if state in DELETED else None,
        problem=draw(st.sampled_from([None, fact("words", words="something")])),
    )
    return DiskObservation(
        disk=disk,
        holdings=Holdings(
            tuple(draw(_volume(disk, volume_id)) for volume_id in draw(_some(VOLUMES))),
            tuple(draw(_snapshot(disk, snapshot_id)) for snapshot_id in draw(_some(SNAPSHOTS))),
        ),
        now=NOW,
        operations=tuple(
            make_operation(kind, size_gb=200 if kind is DiskOperationKind.GROW else None)
            for kind in draw(_some(list(DiskOperationKind)))
        ),
        holder=draw(st.sampled_from([None, *(make_reservation(1, status=status) for status in Status)])),
        has_server=draw(st.booleans()),
        zone=draw(st.sampled_from(["", "a", "b"])),
        wanted_snapshots=frozenset(draw(_some(SNAPSHOTS))),
    )


def _some(choices: list[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(choices), unique=True, max_size=len(choices))


def _volume(disk: Disk, volume_id: VolumeId) -> st.SearchStrategy[ObservedVolume]:
    return st.builds(
        ObservedVolume,
        volume_id=st.just(volume_id),
        tags=st.sampled_from([tags_of(disk), None]),
        size_gb=st.sampled_from([100, 200]),
        created_at=st.just(NOW),
        phase=st.sampled_from(VolumePhase),
        zone=st.sampled_from(["", "a", "b"]),
        attached_to=st.sampled_from(["", "i-1"]),
        source_snapshot_id=st.sampled_from([None, *SNAPSHOTS]),
    )


def _snapshot(disk: Disk, snapshot_id: SnapshotId) -> st.SearchStrategy[ObservedSnapshot]:
    return st.builds(
        ObservedSnapshot,
        snapshot_id=st.just(snapshot_id),
        volume_id=st.sampled_from(VOLUMES),
        tags=st.sampled_from([tags_of(disk), None]),
        phase=st.sampled_from(SnapshotPhase),
        started_at=st.integers(0, 20).map(lambda days: NOW - timedelta(days=days)),
        token=st.sampled_from(["", snapshot_token(disk)]),
    )
