"""What is done about a disk in each situation."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from hypothesis import assume, given, settings

from gpudev.domain.disk import DiskId, SnapshotId, is_legal
from gpudev.domain.plans.disk_turn import (
    CreateSnapshot,
    CreateVolume,
    DeleteSnapshot,
    DeleteVolume,
    DiskAction,
    DiskObservation,
    GrowVolume,
    KeepListing,
    RecordDisk,
    SetTags,
    snapshot_token,
)
from gpudev.domain.plans.disks import plan_disk
from gpudev.domain.plans.turn import LookAgain
from gpudev.domain.volume import Holdings, SnapshotPhase, VolumePhase, tags_of
from gpudev.texts.sentences import say
from gpudev.texts.vocabulary import DiskEventKind, DiskOperationKind, DiskState, Status
from tests.support.disk_values import (
    SNAPSHOTS,
    VOLUMES,
    make_disk,
    make_operation,
    make_snapshot,
    make_volume,
    observations,
    observe,
)
from tests.support.domain_values import HOUR, MINUTE, NOW, make_reservation
from tests.support.parts import change_disk

PLACED = make_reservation(1, status=Status.PREPARING)
ENDED = make_reservation(1, status=Status.EXPIRED)
Action = TypeVar("Action")


def only(plan: tuple[DiskAction, ...], kind: type[Action]) -> Action:
    """The one action of this kind; besides it the plan has nothing but patience."""
    [action] = [each for each in plan if not isinstance(each, LookAgain)]
    assert isinstance(action, kind)
    return action


@settings(max_examples=300, deadline=None, derandomize=True)
@given(observations())
def test_every_situation_has_a_plan_of_legal_moves(seen: DiskObservation) -> None:
    assume(seen.disk.state is not DiskState.PURGING or seen.disk.delete_date in (NOW, NOW - HOUR))
    for action in plan_disk(seen):
        if isinstance(action, RecordDisk) and action.before.state is not action.after.state:
            assert is_legal(action.before.state, action.after.state)


def test_a_new_disk_gets_its_volume() -> None:
    seen = observe(make_disk(DiskState.CREATING))
    spec = only(plan_disk(seen), CreateVolume).spec
    assert (spec.size_gb, spec.tags, spec.source_snapshot_id) == (100, tags_of(seen.disk), None)


def test_a_volume_that_was_made_before_a_crash_is_taken_and_the_request_is_done() -> None:
    disk = make_disk(DiskState.CREATING)
    asked = make_operation(DiskOperationKind.CREATE)
    seen = observe(disk, holdings=Holdings((make_volume(disk, 1),)), operations=(asked,))
    record = only(plan_disk(seen), RecordDisk)
    assert (record.after.state, record.after.volume.volume_id) == (DiskState.AVAILABLE, VOLUMES[1])
    assert [outcome.operation_id for outcome in record.outcomes] == [asked.operation_id]


def test_a_copy_waits_for_the_snapshot_of_its_source() -> None:
    disk = make_disk(DiskState.CREATING, source_disk_id=DiskId("other"))
    assert all(isinstance(action, LookAgain) for action in plan_disk(observe(disk)))
    ready = change_disk(disk, source_snapshot_id=SnapshotId("snap-other"))
    assert only(plan_disk(observe(ready)), CreateVolume).spec.source_snapshot_id == "snap-other"


def test_a_disk_that_was_taken_becomes_ready_and_counts_as_written_to() -> None:
    record = only(plan_disk(observe(make_disk(DiskState.ATTACHING), holder=PLACED)), RecordDisk)
    assert (record.after.state, record.after.volume.is_dirty) == (DiskState.IN_USE, True)
    assert record.after.last_used == NOW
    assert record.is_ready


def test_the_first_volume_is_made_in_the_zone_of_the_node() -> None:
    seen = observe(make_disk(DiskState.ATTACHING, volume_id=None), holder=PLACED, zone="b")
    assert only(plan_disk(seen), CreateVolume).spec.zone == "b"


@pytest.mark.parametrize("holder", [None, ENDED, make_reservation(1, status=Status.QUEUED)])
def test_a_disk_whose_reservation_went_before_the_server_is_free_at_once(holder: Any) -> None:
    record = only(plan_disk(observe(make_disk(DiskState.ATTACHING), holder=holder)), RecordDisk)
    assert (record.after.state, record.after.reservation_id) == (DiskState.AVAILABLE, None)
    assert record.frees


def test_a_lost_volume_is_a_problem_and_never_made_anew() -> None:
    seen = observe(make_disk(DiskState.ATTACHING), holder=PLACED, holdings=Holdings())
    record = only(plan_disk(seen), RecordDisk)
    assert record.after.state is DiskState.ATTACHING
    assert "is gone" in say(record.after.problem)
    assert "Operator" in say(record.after.problem)


def test_a_volume_that_somebody_else_has_is_not_mounted_twice() -> None:
    disk = make_disk(DiskState.ATTACHING)
    seen = observe(disk, holder=PLACED, holdings=Holdings((make_volume(disk, attached_to="i-9"),)))
    record = only(plan_disk(seen), RecordDisk)
    assert "i-9" in say(record.after.problem)
    again = observe(record.after, holder=PLACED, holdings=seen.holdings)
    assert all(isinstance(action, LookAgain) for action in plan_disk(again)), "it is said once"


class TestMove:
    """To another zone: snapshot, new volume, the row, and only then the old volume."""

    disk = make_disk(DiskState.ATTACHING)
    old = make_volume(disk)
    fresh = make_snapshot(disk)
    new = make_volume(disk, 1, zone="b", source_snapshot_id=SNAPSHOTS[0])

    def plan(self, disk: Any, holdings: Holdings) -> tuple[DiskAction, ...]:
        return plan_disk(observe(disk, holder=PLACED, zone="b", holdings=holdings))

    def test_a_disk_that_was_written_to_is_snapshotted_first(self) -> None:
        dirty = change_disk(self.disk, is_dirty=True)
        assert only(self.plan(dirty, Holdings((self.old,), (self.fresh,))), CreateSnapshot)

    def test_a_clean_one_is_copied_from_its_last_snapshot(self) -> None:
        spec = only(self.plan(self.disk, Holdings((self.old,), (self.fresh,))), CreateVolume).spec
        assert (spec.zone, spec.source_snapshot_id) == ("b", SNAPSHOTS[0])

    def test_the_row_names_the_new_volume_before_the_old_one_goes(self) -> None:
        holdings = Holdings((self.old, self.new), (self.fresh,))
        record = only(self.plan(self.disk, holdings), RecordDisk)
        assert (record.after.volume.volume_id, record.after.volume.zone) == (VOLUMES[1], "b")
        after = self.plan(record.after, holdings)
        assert [each.volume_id for each in after if isinstance(each, DeleteVolume)] == [VOLUMES[0]]

    def test_nothing_goes_while_the_new_volume_is_being_made(self) -> None:
        making = replace(self.new, phase=VolumePhase.MAKING)
        plan = self.plan(self.disk, Holdings((self.old, making), (self.fresh,)))
        assert all(isinstance(action, LookAgain) for action in plan)


def test_a_disk_in_use_is_left_alone() -> None:
    assert plan_disk(observe(make_disk(DiskState.IN_USE), holder=PLACED)) == ()


def test_the_end_of_a_reservation_is_followed_by_a_snapshot() -> None:
    disk = make_disk(DiskState.IN_USE, is_dirty=True)
    released = only(plan_disk(observe(disk, holder=ENDED)), RecordDisk).after
    assert (released.state, released.last_used) == (DiskState.RELEASING, NOW)
    snapshotting = only(plan_disk(observe(released, holder=ENDED)), RecordDisk).after
    assert snapshotting.state is DiskState.SNAPSHOTTING
    spec = only(plan_disk(observe(snapshotting, holder=ENDED)), CreateSnapshot).spec
    done = make_snapshot(disk, token=spec.token)
    holdings = Holdings((make_volume(disk),), (done,))
    record, listing = plan_disk(observe(snapshotting, holder=ENDED, holdings=holdings))
    assert isinstance(record, RecordDisk)
    assert (record.after.state, record.after.volume.is_dirty) == (DiskState.AVAILABLE, False)
    assert record.after.snapshots.snapshot_count == 1
    assert isinstance(listing, KeepListing)


@pytest.mark.parametrize("kind", ["server", "volume"])
def test_no_snapshot_begins_while_somebody_may_write(kind: str) -> None:
    disk = make_disk(DiskState.RELEASING, released_at=NOW - MINUTE)
    volume = make_volume(disk, attached_to="i-1" if kind == "volume" else "")
    seen = observe(disk, holder=ENDED, has_server=kind == "server", holdings=Holdings((volume,)))
    assert all(isinstance(action, LookAgain) for action in plan_disk(seen))


def test_a_volume_that_is_not_let_go_becomes_a_problem_with_advice() -> None:
    disk = make_disk(DiskState.RELEASING, released_at=NOW - HOUR)
    holdings = Holdings((make_volume(disk, attached_to="i-1"),))
    record = only(plan_disk(observe(disk, holder=ENDED, holdings=holdings)), RecordDisk)
    assert record.after.state is DiskState.RELEASING
    assert record.event is not None
    assert record.event.kind is DiskEventKind.PROBLEM
    assert "i-1" in record.event.message
    assert "Operator: detach it" in record.event.message


def test_after_a_snapshot_that_failed_another_is_made() -> None:
    disk = make_disk(DiskState.SNAPSHOTTING, snapshot_number=3)
    failed = make_snapshot(disk, token=snapshot_token(disk), phase=SnapshotPhase.FAILED)
    holdings = Holdings((make_volume(disk),), (failed,))
    record = only(plan_disk(observe(disk, holdings=holdings)), RecordDisk)
    assert record.after.state is DiskState.SNAPSHOTTING
    assert "the data is on volume" in say(record.after.problem)
    spec = only(plan_disk(observe(record.after, holdings=holdings)), CreateSnapshot).spec
    assert spec.token != failed.token


def test_tags_that_say_something_else_are_written_again() -> None:
    disk = make_disk(name="renamed")
    old = make_disk(name="old")
    holdings = Holdings((make_volume(old),), (make_snapshot(old), make_snapshot(disk, 1)))
    action = only(plan_disk(observe(disk, holdings=holdings)), SetTags)
    assert action.volume_ids == (VOLUMES[0],)
    assert action.snapshot_ids == (SNAPSHOTS[0],)
    assert action.tags.disk_name == "renamed"


def test_a_rename_is_done_when_everything_says_so() -> None:
    asked = make_operation(DiskOperationKind.RENAME)
    record = only(plan_disk(observe(make_disk(), operations=(asked,))), RecordDisk)
    assert [outcome.operation_id for outcome in record.outcomes] == [asked.operation_id]


def test_a_disk_grows_volume_first() -> None:
    disk = make_disk()
    asked = make_operation(DiskOperationKind.GROW, size_gb=200)
    assert only(plan_disk(observe(disk, operations=(asked,))), GrowVolume).size_gb == 200
    grown = Holdings((make_volume(disk, size_gb=200),))
    record = only(plan_disk(observe(disk, operations=(asked,), holdings=grown)), RecordDisk)
    assert record.after.spec.size_gb == 200
    assert record.outcomes


def test_old_snapshots_go_unless_a_copy_is_about_to_be_made_of_them() -> None:
    disk = make_disk()
    ages = [timedelta(days=days) for days in (8, 9, 10, 11, 12)]
    snapshots = tuple(make_snapshot(disk, n, started_at=NOW - age) for n, age in enumerate(ages))
    holdings = Holdings((make_volume(disk),), snapshots)
    plan = plan_disk(observe(disk, holdings=holdings, wanted_snapshots=frozenset({SNAPSHOTS[4]})))
    assert [each.snapshot_id for each in plan if isinstance(each, DeleteSnapshot)] == [SNAPSHOTS[3]]


def test_a_deleted_disk_is_purged_after_its_date_and_not_before() -> None:
    disk = make_disk(DiskState.SOFT_DELETED)
    assert disk.delete_date is not None
    [patience] = plan_disk(observe(disk))
    assert patience == LookAgain(disk.delete_date)
    purging = only(plan_disk(observe(disk, now=disk.delete_date)), RecordDisk).after
    assert purging.state is DiskState.PURGING
    holdings = Holdings((make_volume(disk),), (make_snapshot(disk),))
    plan = plan_disk(observe(purging, now=disk.delete_date, holdings=holdings))
    assert [type(action) for action in plan] == [DeleteSnapshot, DeleteVolume, LookAgain]
    purged = only(plan_disk(observe(purging, now=disk.delete_date, holdings=Holdings())), RecordDisk).after
    assert purged.state is DiskState.PURGED
