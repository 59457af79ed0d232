"""Nothing is destroyed without a reason that was observed: the rule above all others, as types."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings

from gpudev.domain.errors import Defect
from gpudev.domain.plans.disk_turn import (
    DESTRUCTIVE,
    DeleteSnapshot,
    DeleteVolume,
    DiskAction,
    DiskObservation,
)
from gpudev.domain.plans.disks import plan_disk
from gpudev.domain.proofs import ExpiredSoftDelete, Replaced, Superseded
from gpudev.domain.volume import Holdings, SnapshotPhase
from gpudev.texts.vocabulary import DiskState
from tests.support.budgets import choose_depth
from tests.support.disk_values import SNAPSHOTS, VOLUMES, make_disk, make_snapshot, make_volume, observations
from tests.support.domain_values import HOUR, NOW

DAY = timedelta(days=1)
MANY = settings(max_examples=300, deadline=None, derandomize=True)


@pytest.mark.long
@settings(max_examples=choose_depth(long=1000, soak=5000), deadline=None)
@given(observations())
def test_every_plan_of_very_many_destroys_only_what_may_go(seen: DiskObservation) -> None:
    for action in _plan(seen):
        if isinstance(action, DESTRUCTIVE):
            assert _may_go(action, seen), action


@MANY
@given(observations())
def test_every_plan_destroys_only_what_may_go(seen: DiskObservation) -> None:
    """Judged from the observation alone, and in other words than those of the proofs.

    Three rules in one test: to make up an observation takes much longer than to judge its plan.
    """
    plan = _plan(seen)
    for action in plan:
        if isinstance(action, DESTRUCTIVE):
            assert _may_go(action, seen), action
    doomed = {action.volume_id for action in plan if isinstance(action, DeleteVolume)}
    if seen.disk.state is not DiskState.PURGING:
        assert seen.disk.volume.volume_id not in doomed, "a volume that the row names goes only with its disk"
    held = {volume.volume_id for volume in seen.holdings.volumes if volume.attached_to}
    assert not doomed & held, "what a machine has is never deleted"


def _plan(seen: DiskObservation) -> tuple[DiskAction, ...]:
    """A row that says what cannot be gives a defect, which destroys nothing either."""
    try:
        return plan_disk(seen)
    except Defect:
        return ()


def _may_go(action: DeleteVolume | DeleteSnapshot, seen: DiskObservation) -> bool:
    disk = seen.disk
    has_expired = disk.delete_date is not None and disk.delete_date <= seen.now
    if disk.state is DiskState.PURGING and has_expired:
        return True
    complete = [each for each in seen.holdings.snapshots if each.phase is SnapshotPhase.COMPLETED]
    if isinstance(action, DeleteVolume):
        return any(each.volume_id == action.volume_id for each in complete)
    found = next(each for each in complete if each.snapshot_id == action.snapshot_id)
    newer = [each for each in complete if each.started_at >= found.started_at and each is not found]
    return len(newer) >= 3 and seen.now - found.started_at > 7 * DAY


@pytest.mark.parametrize("state", [state for state in DiskState if state is not DiskState.PURGING])
def test_an_expired_soft_delete_is_of_a_disk_that_is_being_purged(state: DiskState) -> None:
    with pytest.raises(Defect):
        ExpiredSoftDelete(make_disk(state, delete_date=NOW - HOUR), NOW)


def test_a_soft_delete_is_no_reason_before_its_date() -> None:
    disk = make_disk(DiskState.PURGING, delete_date=NOW + HOUR)
    with pytest.raises(Defect):
        ExpiredSoftDelete(disk, NOW)
    assert ExpiredSoftDelete(disk, NOW + HOUR)


def test_a_volume_is_replaced_by_one_that_was_made_of_its_last_snapshot() -> None:
    disk = make_disk(volume_id=VOLUMES[1])
    old, new = make_volume(disk, 0), make_volume(disk, 1, source_snapshot_id=SNAPSHOTS[0])
    last, older = make_snapshot(disk, 0), make_snapshot(disk, 1)
    holdings = Holdings((old, new), (last, older))
    assert DeleteVolume(old.volume_id, Replaced(disk, old.volume_id, last.snapshot_id, holdings))
    with pytest.raises(Defect):
        Replaced(disk, old.volume_id, older.snapshot_id, holdings)
    with pytest.raises(Defect):
        Replaced(disk, new.volume_id, last.snapshot_id, holdings)


def test_a_proof_is_about_one_thing() -> None:
    disk = make_disk(volume_id=VOLUMES[1])
    old, new = make_volume(disk, 0), make_volume(disk, 1, source_snapshot_id=SNAPSHOTS[0])
    proof = Replaced(disk, old.volume_id, SNAPSHOTS[0], Holdings((old, new), (make_snapshot(disk, 0),)))
    with pytest.raises(Defect, match="not about"):
        DeleteVolume(new.volume_id, proof)


@pytest.mark.parametrize(
    "ages, gone",
    [
        ([1, 2, 3, 4], []),
        ([1, 2, 3, 8], [3]),
        ([8, 9, 10], []),
        ([8, 9, 10, 11, 12], [3, 4]),
        ([0, 1, 2, 6, 7, 8], [5]),
    ],
    ids=str,
)
def test_the_newest_three_and_all_of_a_week_are_kept(ages: list[int], gone: list[int]) -> None:
    disk = make_disk()
    snapshots = tuple(make_snapshot(disk, n, started_at=NOW - age * DAY) for n, age in enumerate(ages))
    holdings = Holdings((make_volume(disk),), snapshots)
    for number, snapshot in enumerate(snapshots):
        if number in gone:
            assert Superseded(snapshot.snapshot_id, holdings, NOW)
        else:
            with pytest.raises(Defect):
                Superseded(snapshot.snapshot_id, holdings, NOW)
