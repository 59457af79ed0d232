"""What the rows of disks promise: guarded writes, leases, one holder, one winner."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest

from gpudev.bootstrap.foundation import Stores
from gpudev.domain.capacity import Node
from gpudev.domain.disk import (
    Disk,
    DiskEvent,
    DiskId,
    DiskOperation,
    DiskSpec,
    SnapshotId,
    VolumeId,
    move,
    soft_delete,
)
from gpudev.domain.errors import Conflict, NotFound, Stale
from gpudev.domain.names import NodeName, OperationId
from gpudev.domain.operations import OperationOutcome
from gpudev.domain.plans.disk_turn import RecordDisk
from gpudev.domain.plans.turn import Record
from gpudev.domain.reservation import Event, Reservation, place
from gpudev.domain.volume import ObservedSnapshot, SnapshotPhase
from gpudev.ports.reservations import HomeWish
from gpudev.ports.turns import Kind
from gpudev.ports.users import User
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import DiskEventKind, DiskOperationKind, DiskState, EventKind, OperationStatus
from tests.support.parts import change, change_disk
from tests.support.reservations import NOON, make_reservation, open_test_stores, submit

pytestmark = pytest.mark.anyio

LEASE = timedelta(seconds=30)
NODE = Node(NodeName("t4-0"), "t4", 4, 4)


def make_disk(user: User, name: str = "work", **changes: object) -> Disk:
    disk = Disk(DiskId(str(uuid4())), DiskSpec(user.user_id, user.username, name, 20, NOON))
    return replace(disk, **changes)  # type: ignore[arg-type]  # by name


def an_operation(kind: DiskOperationKind = DiskOperationKind.CREATE) -> DiskOperation:
    return DiskOperation(OperationId(str(uuid4())), kind, NOON)


async def add(stores: Stores, disk: Disk) -> Disk:
    await stores.disks.create(disk, an_operation())
    return await stores.disks.get(disk.id)


async def place_it(stores: Stores, reservation: Reservation, port_slot: str = "") -> bool:
    after = place(reservation, (NODE.name,), NOON, port_slot)
    record = Record(reservation, after, Event(EventKind.PLACED, fact("words", words="Placed."), NOON))
    async with stores.admissions.lock("t4") as transaction:
        return await transaction.record(record)


async def test_a_new_disk_comes_with_its_operation_and_its_message(stores: Stores, user: User) -> None:
    disk = await add(stores, make_disk(user))
    assert (disk.state, disk.operation_status) == (DiskState.CREATING, "requested")
    assert [message.key for message in await stores.messages.of_disks.read(10)] == [disk.id]
    assert disk.operation_id is not None
    stored = await stores.disks.get_operation(disk.operation_id, user.user_id)
    assert (stored.kind, stored.status) == (DiskOperationKind.CREATE, OperationStatus.REQUESTED)
    stranger = await stores.users.upsert("eve")
    with pytest.raises(NotFound):
        await stores.disks.get_operation(disk.operation_id, stranger.user_id)


async def test_a_name_is_taken_among_disks_that_are_not_deleted(stores: Stores, user: User) -> None:
    first = await add(stores, make_disk(user, state=DiskState.AVAILABLE))
    with pytest.raises(Conflict) as taken:
        await add(stores, make_disk(user))
    assert taken.value.code == "disk_exists"
    record = RecordDisk(first, soft_delete(first, NOON), NOON)
    await stores.disks.request(record, an_operation(DiskOperationKind.DELETE))
    await add(stores, make_disk(user))
    assert len(await stores.disks.list_of(user.user_id)) == 1
    assert len(await stores.disks.list_of(user.user_id, is_deleted=True)) == 1


async def test_a_late_writer_is_refused(stores: Stores, user: User) -> None:
    disk = await add(stores, make_disk(user, state=DiskState.AVAILABLE))
    renamed = RecordDisk(disk, change_disk(disk, name="other"), NOON)
    await stores.disks.request(renamed, an_operation(DiskOperationKind.RENAME))
    with pytest.raises(Stale):
        await stores.disks.request(renamed, an_operation(DiskOperationKind.RENAME))


async def test_a_submit_makes_every_earlier_decision_stale(stores: Stores, user: User) -> None:
    """A delete that was decided before the submit does not take the disk away from under it."""
    disk = await add(stores, make_disk(user, state=DiskState.AVAILABLE))
    decided = RecordDisk(disk, soft_delete(disk, NOON), NOON)
    reservation = await submit(stores, make_reservation(user), HomeWish("work", DiskId(str(uuid4()))))
    assert reservation.spec.disk_id == disk.id
    with pytest.raises(Stale):
        await stores.disks.request(decided, an_operation(DiskOperationKind.DELETE))
    assert (await stores.disks.get(disk.id)).named_by == reservation.id


async def test_one_process_at_a_time_has_the_lease(stores: Stores, user: User) -> None:
    disk = await add(stores, make_disk(user))
    claim = await stores.disks.claim(disk.id, LEASE)
    assert claim is not None
    assert [asked.kind for asked in claim.operations] == [DiskOperationKind.CREATE]
    async with open_test_stores(stores.database.dsn) as others:
        assert await others.disks.claim(disk.id, LEASE) is None
        await stores.turns.end(claim.lease, None)
        assert await others.disks.claim(disk.id, LEASE) is not None


async def test_a_record_settles_operations_and_tells_what_happened(stores: Stores, user: User) -> None:
    disk = await add(stores, make_disk(user))
    claim = await stores.disks.claim(disk.id, LEASE)
    assert claim is not None
    outcome = OperationOutcome(claim.operations[0].operation_id, OperationStatus.DONE)
    snapshot = ObservedSnapshot(
        SnapshotId("snap-1"), VolumeId("vol-1"), None, SnapshotPhase.COMPLETED, NOON, 20
    )
    after = change_disk(move(disk, DiskState.AVAILABLE), volume_id=VolumeId("vol-1"))
    event = DiskEvent(DiskEventKind.CREATED, fact("disk_volume_ready", volume="vol-1"), NOON)
    written = await stores.disks.record(claim, RecordDisk(disk, after, NOON, event, (outcome,), (snapshot,)))
    assert written.version == disk.version + 1
    stored = await stores.disks.get(disk.id)
    assert (stored.volume.volume_id, stored.operation_status) == ("vol-1", "done")
    assert await stores.disks.list_events(disk.id) == (event,)
    assert [each.snapshot_id for each in await stores.disks.list_snapshots(disk.id)] == ["snap-1"]
    await stores.disks.keep_listing(SnapshotId("snap-1"), "a file", None, 7)
    content = await stores.disks.find_content(disk.id)
    assert content is not None
    assert (content.text, content.address) == ("a file", None)
    with pytest.raises(Stale):
        await stores.disks.record(claim, RecordDisk(disk, after, NOON, event))


async def test_a_placement_takes_the_disk_or_does_not_happen(stores: Stores, user: User) -> None:
    reservation = await submit(stores, make_reservation(user), HomeWish("work", DiskId(str(uuid4()))))
    assert reservation.spec.disk_id is not None
    await stores.database.execute("UPDATE disks SET state = 'snapshotting'")
    async with stores.admissions.lock("t4") as transaction:
        assert await transaction.list_disk_busy() == {reservation.id}
    assert not await place_it(stores, reservation)
    assert (await stores.reservations.get(reservation.id)).version == reservation.version
    await stores.database.execute("UPDATE disks SET state = 'available'")
    assert await place_it(stores, reservation)
    disk = await stores.disks.get(reservation.spec.disk_id)
    assert (disk.state, disk.reservation_id) == (DiskState.ATTACHING, reservation.id)


async def test_of_many_who_ask_at_once_one_has_the_disk(stores: Stores, user: User) -> None:
    async def ask() -> bool:
        try:
            await submit(stores, make_reservation(user), HomeWish("raced", DiskId(str(uuid4()))))
        except Conflict as conflict:
            return conflict.code != "disk_in_use"
        return True

    assert sum(await asyncio.gather(*(ask() for _ in range(8)))) == 1
    assert len(await stores.disks.list_of(user.user_id)) == 1


async def test_a_placement_whose_port_slot_is_gone_leaves_the_disk(stores: Stores, user: User) -> None:
    disk = await add(stores, make_disk(user, state=DiskState.AVAILABLE))
    first = await submit(stores, make_reservation(user))
    second = await submit(stores, make_reservation(user), HomeWish("work", DiskId(str(uuid4()))))
    assert await place_it(stores, first, "slot-1")
    with pytest.raises(Stale):
        await place_it(stores, second, "slot-1")
    assert (await stores.disks.get(disk.id)).state is DiskState.AVAILABLE
    assert await place_it(stores, second, "slot-2")
    assert (await stores.disks.get(disk.id)).reservation_id == second.id


async def test_the_default_disk_is_refused_as_well_while_another_has_it(stores: Stores, user: User) -> None:
    wish = HomeWish("default", DiskId(str(uuid4())), is_default=True)
    first = await submit(stores, make_reservation(user), wish)
    before = await stores.disks.get(first.spec.disk_id)
    with pytest.raises(Conflict) as refused:
        await submit(stores, make_reservation(user), wish)
    assert (first.spec.disk_name, refused.value.code) == ("default", "disk_in_use")
    assert await stores.disks.get(first.spec.disk_id) == before


async def test_the_end_of_a_reservation_makes_its_disk_due(stores: Stores, user: User) -> None:
    reservation = await submit(stores, make_reservation(user), HomeWish("work", DiskId(str(uuid4()))))
    await place_it(stores, reservation)
    await stores.database.execute("UPDATE turns SET next_turn_at = NULL, settled = asked")
    claim = await stores.reservations.claim(reservation.id, LEASE)
    assert claim is not None
    event = Event(EventKind.REQUEUED, fact("words", words="Back."), NOON)
    back = change(claim.reservation, status="queued", members=(), placed_at=None)
    await stores.reservations.record(claim, Record(claim.reservation, back, event))
    assert await stores.turns.list_due(Kind.DISK, NOON, 10) == (reservation.spec.disk_id,)
