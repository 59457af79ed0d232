"""When something is wrong outside: all data is still there, and somebody is told what to do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from gpudev.bootstrap.foundation import Stores
from gpudev.domain.disk import Disk
from gpudev.domain.errors import Defect
from gpudev.domain.reservation import Reservation
from gpudev.texts.vocabulary import DiskEventKind, DiskState, OperationStatus, Reason, Status
from tests.support.disk_world import DiskWorld, Ec2Storage, MovableClock, make_caller
from tests.support.ec2 import Ec2, on_calls
from tests.support.reservations import NOON, open_test_stores
from tests.support.words import words_of

pytestmark = pytest.mark.anyio

MINUTE = timedelta(minutes=1)


@pytest.fixture
async def world(database: str, ec2: Ec2) -> AsyncIterator[DiskWorld]:
    async with open_test_stores(database) as stores:
        yield await make_world(stores, ec2)


async def make_world(stores: Stores, ec2: Ec2) -> DiskWorld:
    caller = make_caller(await stores.users.upsert("ada"))
    return DiskWorld(stores, Ec2Storage(ec2), caller, MovableClock())


async def used_disk(world: DiskWorld) -> tuple[Disk, Reservation]:
    """A disk with something on it, and the reservation that has it."""
    reservation = await world.submit("work")
    await world.drive()
    await world.write(reservation.id)
    assert reservation.spec.disk_id is not None
    return await world.stores.disks.get(reservation.spec.disk_id), reservation


async def after(world: DiskWorld, minutes: int) -> None:
    world.clock.time += minutes * MINUTE
    await world.drive()


async def problems_of(world: DiskWorld, disk: Disk) -> list[str]:
    events = await world.stores.disks.list_events(disk.id)
    return [event.message for event in events if event.kind is DiskEventKind.PROBLEM]


def assert_all_is_there(world: DiskWorld, disk: Disk) -> None:
    world.storage.note_copies()
    assert disk.volume.volume_id is not None
    assert world.expected[disk.id] <= world.storage.read(disk.volume.volume_id)


async def test_a_snapshot_that_is_refused_leaves_the_disk_waiting_with_its_data(
    world: DiskWorld, ec2: Ec2
) -> None:
    disk, reservation = await used_disk(world)
    ec2.fault = on_calls("CreateSnapshot", code="SnapshotLimitExceeded")
    await world.cancel(reservation)
    await world.drive()
    now = await world.stores.disks.get(disk.id)
    assert now.state is DiskState.SNAPSHOTTING
    assert_all_is_there(world, disk)
    [problem] = await problems_of(world, disk)
    assert "SnapshotLimitExceeded" in problem
    assert "Operator: raise the account's limit" in problem
    waiting = await world.submit("work")
    await world.drive()
    assert (await world.stores.reservations.get(waiting.id)).state.reason is Reason.DISK_BUSY

    ec2.fault = lambda _name: None
    await after(world, 2)
    healed = await world.stores.disks.get(disk.id)
    assert (healed.state, healed.problem) == (DiskState.IN_USE, None)
    assert (await world.stores.reservations.get(waiting.id)).state.status is Status.ACTIVE
    assert_all_is_there(world, disk)


async def test_a_volume_that_is_not_let_go_is_waited_for_and_reported(world: DiskWorld) -> None:
    disk, reservation = await used_disk(world)
    volume = world.cluster.mounts.pop(reservation.id)
    await world.cancel(reservation)
    await world.drive()
    assert (await world.stores.disks.get(disk.id)).state is DiskState.RELEASING
    assert (await world.stores.reservations.get(reservation.id)).is_cleaned, "the GPUs are free"
    await after(world, 11)
    [problem] = await problems_of(world, disk)
    assert "still attached" in problem
    assert "Operator: detach it" in problem
    assert_all_is_there(world, disk)

    world.storage.detach(volume)
    await after(world, 2)
    assert (await world.stores.disks.get(disk.id)).state is DiskState.AVAILABLE
    assert_all_is_there(world, disk)


async def test_without_permission_a_reservation_fails_with_the_reason_and_no_empty_home(
    world: DiskWorld, ec2: Ec2
) -> None:
    ec2.fault = on_calls("CreateVolume", code="UnauthorizedOperation")
    reservation = await world.submit("work")
    await world.drive()
    failed = await world.stores.reservations.get(reservation.id)
    assert (failed.state.status, failed.state.reason) == (Status.FAILED, Reason.DISK_FAILED)
    assert "UnauthorizedOperation" in words_of(failed.state.detail)
    assert not world.cluster.servers
    assert reservation.spec.disk_id is not None
    disk = await world.stores.disks.get(reservation.spec.disk_id)
    [problem] = await problems_of(world, disk)
    assert "Operator: give the controller's role" in problem
    ec2.fault = lambda _name: None
    await after(world, 2)
    assert (await world.stores.disks.get(disk.id)).state is DiskState.AVAILABLE


async def test_an_account_without_any_right_loses_nothing(world: DiskWorld, ec2: Ec2) -> None:
    disk, reservation = await used_disk(world)
    ec2.fault = lambda _name: "UnauthorizedOperation"
    await world.cancel(reservation)
    await after(world, 5)
    assert (await world.stores.disks.get(disk.id)).problem
    ec2.fault = lambda _name: None
    await after(world, 5)
    healed = await world.stores.disks.get(disk.id)
    assert (healed.state, healed.snapshots.snapshot_count) == (DiskState.AVAILABLE, 1)
    assert_all_is_there(world, disk)


async def test_a_row_that_was_lost_comes_back_from_the_volume(world: DiskWorld) -> None:
    disk, reservation = await used_disk(world)
    await world.cancel(reservation)
    await world.drive()
    world.storage.note_copies()
    await world.stores.database.execute(
        "TRUNCATE disks, snapshots, disk_operations, disk_events, reservation_records CASCADE"
    )
    done = await world.reconcile()
    assert done is not None
    assert done.statistics.created == 1
    back = await world.stores.disks.get(disk.id)
    assert (back.spec.name, back.volume.volume_id, back.snapshots.snapshot_count) == (
        "work",
        disk.volume.volume_id,
        1,
    )
    events = await world.stores.disks.list_events(disk.id)
    assert [event.kind for event in events] == [DiskEventKind.IMPORTED]
    assert_all_is_there(world, disk)
    again = await world.submit("work")
    await world.drive()
    assert (await world.stores.reservations.get(again.id)).state.status is Status.ACTIVE
    assert world.cluster.mounts[again.id] == disk.volume.volume_id


async def test_a_volume_that_is_gone_fails_the_reservation_and_is_not_made_anew(
    world: DiskWorld, ec2: Ec2
) -> None:
    disk, reservation = await used_disk(world)
    await world.cancel(reservation)
    await world.drive()
    world.storage.note_copies()
    ec2.client().delete_volume(VolumeId=disk.volume.volume_id)
    again = await world.submit("work")
    await world.drive()
    failed = await world.stores.reservations.get(again.id)
    assert (failed.state.status, failed.state.reason) == (Status.FAILED, Reason.DISK_FAILED)
    assert "is gone" in words_of(failed.state.detail)
    assert not world.cluster.servers
    await after(world, 2)
    await world.own.clone(world.caller, "work", "rescued")
    await after(world, 2)
    rescued = await world.stores.disks.find(world.caller.user_id, "rescued")
    assert rescued is not None
    world.storage.note_copies()
    assert world.storage.read(rescued.volume.volume_id or "") == world.expected[disk.id]


async def test_three_defects_end_the_operation_and_leave_the_disk(world: DiskWorld) -> None:
    """A storage that answers nonsense: our own code fails on it."""
    await world.own.create(world.caller, "work", 20)

    class Broken:
        async def find(self, *_: object) -> object:
            raise Defect("words", words="Nonsense.")

    controller = world.make_disk_engine(Broken())
    disk = await world.stores.disks.find(world.caller.user_id, "work")
    assert disk is not None
    for _ in range(3):
        await controller.read_messages()
        with pytest.raises(Defect):
            await controller.turn(disk.id)
    assert disk.operation_id is not None
    operation = await world.stores.disks.get_operation(disk.operation_id, None)
    assert operation.status is OperationStatus.FAILED
    dead = await world.stores.database.fetch(
        "SELECT message ->> 'disk_id' AS id FROM pgmq.q_disk_operations_dead"
    )
    assert [row["id"] for row in dead] == [disk.id]


async def test_a_disk_moves_zone_by_a_snapshot_and_keeps_every_byte(world: DiskWorld, ec2: Ec2) -> None:
    disk, first = await used_disk(world)
    await world.cancel(first)
    await world.drive()
    world.storage.note_copies()
    # The node in the zone of the disk is full, so that the next reservation goes to the other zone.
    zone_node = f"t4-{disk.volume.zone[-1]}"
    blockers = [await world.submit(f"blocker-{number}") for number in range(2)]
    await world.drive()
    placed = [await world.stores.reservations.get(each.id) for each in blockers]
    assert {each.node for each in placed} == {zone_node}
    second = await world.submit("work")
    await world.drive()
    world.storage.note_copies()
    now = await world.stores.disks.get(disk.id)
    assert (await world.stores.reservations.get(second.id)).state.status is Status.ACTIVE
    assert now.volume.zone != disk.volume.zone
    assert now.volume.volume_id != disk.volume.volume_id
    assert_all_is_there(world, now)
    there = {each["VolumeId"] for each in ec2.client().describe_volumes()["Volumes"]}
    assert disk.volume.volume_id not in there, "the old volume went, after the row had named the new one"


async def test_a_rename_that_is_interrupted_is_repaired(world: DiskWorld) -> None:
    disk, reservation = await used_disk(world)
    await world.cancel(reservation)
    await world.drive()
    await world.own.rename(world.caller, "work", "renamed")
    world.dies_after = 0
    await world.drive(1)
    await after(world, 2)
    holdings = await world.storage.volumes.find(disk.id, disk.volume.volume_id)
    names = {each.tags.disk_name for each in (*holdings.volumes, *holdings.snapshots) if each.tags}
    assert names == {"renamed"}


async def test_soft_deleted_disks_are_purged_after_thirty_days_and_not_before(world: DiskWorld) -> None:
    disk, reservation = await used_disk(world)
    await world.cancel(reservation)
    await world.drive()
    await world.own.delete(world.caller, "work")
    await world.drive()
    world.clock.time = NOON + timedelta(days=29)
    await world.drive()
    holdings = await world.storage.volumes.find(disk.id, disk.volume.volume_id)
    assert (len(holdings.volumes), len(holdings.snapshots)) == (1, 1)
    assert all(each.tags and each.tags.delete_date for each in (*holdings.volumes, *holdings.snapshots))
    world.clock.time = NOON + timedelta(days=31)
    await world.drive()
    gone = await world.storage.volumes.find(disk.id, disk.volume.volume_id)
    assert (gone.volumes, gone.snapshots) == ((), ())
    assert (await world.stores.disks.get(disk.id)).state is DiskState.PURGED
