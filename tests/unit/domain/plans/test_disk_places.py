"""Where a disk is: which nodes its reservations can be on, and what is made of one that is nowhere yet."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpudev.domain.plans.admission import Observation, plan_admission
from gpudev.domain.plans.disk_turn import CreateSnapshot, CreateVolume, RecordDisk
from gpudev.domain.plans.disks import plan_disk
from gpudev.domain.plans.turn import Record, SetQueuePlaces
from gpudev.domain.volume import Holdings
from gpudev.texts.vocabulary import DiskState, Reason, Status
from tests.support.disk_values import VOLUMES, make_disk, make_snapshot, make_volume
from tests.support.disk_values import observe as observe_disk
from tests.support.domain_values import NOW, POLICY, QUAD, make_id, make_node, make_reservation
from tests.support.parts import change

ENDED = make_reservation(1, status=Status.EXPIRED)


def observe(*free: int, tied: str | None = "zone-b") -> Observation:
    """Nodes a, b, ... in zones of their own; the first of two requests for 4 GPUs has a disk in a zone."""
    names = "abc"[: len(free)]
    return Observation(
        gpu_type=QUAD,
        waiting=(make_reservation(1, gpu_count=4), make_reservation(2, gpu_count=4)),
        holders=(),
        nodes=tuple(
            make_node(name, free=count, zone=f"zone-{name}") for name, count in zip(names, free, strict=True)
        ),
        shown=frozenset(),
        policy=POLICY,
        now=NOW,
        tied={make_id(1): tied} if tied else {},
    )


def placed(seen: Observation) -> dict[str, str]:
    plan = plan_admission(seen)
    records = (action for action in plan if isinstance(action, Record))
    return {
        one.before.id: one.after.nodes[0] for one in records if one.after.state.status is Status.PREPARING
    }


def test_one_whose_disk_cannot_move_goes_where_it_is() -> None:
    assert placed(observe(4, 4, tied=None)) == {make_id(1): "a", make_id(2): "b"}
    assert placed(observe(4, 4)) == {make_id(1): "b", make_id(2): "a"}


def test_one_that_waits_for_the_node_of_its_disk_holds_back_nobody_elsewhere() -> None:
    assert placed(observe(4, 0)) == {make_id(2): "a"}


def test_one_whose_disk_is_where_no_node_of_the_type_is_is_told_so() -> None:
    [places] = [
        one for one in plan_admission(observe(4, 4, tied="zone-c")) if isinstance(one, SetQueuePlaces)
    ]
    assert [(one.reservation_id, one.reason) for one in places.places] == [(make_id(1), Reason.NO_NODES)]


def test_a_promise_on_a_node_that_its_disk_cannot_reach_is_not_kept() -> None:
    seen = observe(4, 0)
    promised = change(
        seen.waiting[0], status=Status.QUEUED, estimated_start_at=NOW, planned_nodes=(seen.nodes[0].name,)
    )
    assert make_id(1) not in placed(replace(seen, waiting=(promised,)))


@pytest.mark.parametrize("state", [DiskState.RELEASING, DiskState.SNAPSHOTTING])
def test_what_nobody_ever_mounted_is_given_back_without_a_snapshot(state: DiskState) -> None:
    disk = make_disk(state, is_dirty=True, snapshot_number=1)
    blank = replace(make_volume(disk), is_blank=True)
    [record] = plan_disk(observe_disk(disk, holdings=Holdings((blank,)), holder=ENDED))
    assert isinstance(record, RecordDisk)
    assert (record.after.state, record.after.volume.is_dirty) == (DiskState.AVAILABLE, False)


@pytest.mark.parametrize("changes", [{"has_server": True}, {"attached_to": "pod a"}])
def test_what_may_still_be_mounted_is_waited_for_though_it_is_blank(changes: dict[str, object]) -> None:
    disk = make_disk(DiskState.RELEASING, is_dirty=True, released_at=NOW)
    held = str(changes.get("attached_to", ""))
    blank = replace(make_volume(disk), is_blank=True, attached_to=held)
    seen = observe_disk(disk, holdings=Holdings((blank,)), holder=ENDED)
    plan = plan_disk(replace(seen, has_server=bool(changes.get("has_server"))))
    assert not any(isinstance(action, RecordDisk | CreateSnapshot) for action in plan)


def test_a_disk_remembers_the_place_that_its_first_server_gave_it() -> None:
    disk = make_disk(DiskState.SNAPSHOTTING, zone="", snapshot_number=1)
    volume = replace(make_volume(disk), zone="zone-b")
    taken = replace(make_snapshot(disk), token=f"{disk.id}/1")
    plan = plan_disk(observe_disk(disk, holdings=Holdings((volume,), (taken,)), holder=ENDED))
    [record] = [action for action in plan if isinstance(action, RecordDisk)]
    assert (record.after.state, record.after.volume.zone) == (DiskState.AVAILABLE, "zone-b")


def test_what_a_reservation_wrote_before_it_was_stopped_moves_with_its_disk() -> None:
    """Its first start had moved the disk, too: that snapshot has nothing of what was written since."""
    placed_again = make_reservation(1, status=Status.PREPARING, node_count=1)
    first = make_disk(DiskState.ATTACHING, is_dirty=True)
    plan = plan_disk(observe_disk(first, holder=placed_again, zone="b"))
    [begun] = [action for action in plan if isinstance(action, CreateSnapshot)]
    before_it = make_snapshot(first, 1, token=begun.spec.token)
    disk = make_disk(DiskState.ATTACHING, volume_id=VOLUMES[1], zone="b", snapshot_number=1)
    of_its_run = make_snapshot(disk, 0, volume_id=VOLUMES[1], token=f"{disk.id}/1")
    volumes = (make_volume(disk, 0), make_volume(disk, 1, zone="b", source_snapshot_id=before_it.snapshot_id))
    holdings = Holdings(volumes, (of_its_run, before_it))
    plan = plan_disk(observe_disk(disk, holdings=holdings, holder=placed_again, zone="a"))
    [made] = [action for action in plan if isinstance(action, CreateVolume)]
    assert made.spec.source_snapshot_id == of_its_run.snapshot_id
