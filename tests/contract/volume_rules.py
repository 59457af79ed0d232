"""What a storage of disks has to do, as tests: every adapter runs them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from gpudev.domain.disk import DiskId, SnapshotId, VolumeId
from gpudev.domain.volume import DiskTags, SnapshotPhase, SnapshotSpec, VolumePhase, VolumeSpec
from gpudev.ports.volumes import Volumes

DISK = DiskId("d15c0000-0000-4000-8000-000000000001")
TAGS = DiskTags("ada", "work", DISK)
FIRST = VolumeSpec("first", TAGS, 20)


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while not await condition():  # noqa: ASYNC110 - the storage works by itself
            await asyncio.sleep(0.01)


async def make_volume(volumes: Volumes, spec: VolumeSpec = FIRST) -> VolumeId:
    await volumes.create_volume(spec)

    async def is_ready() -> bool:
        found = (await volumes.find(DISK, None)).volumes
        return bool(found) and all(each.phase is VolumePhase.READY for each in found)

    await eventually(is_ready)
    return (await volumes.find(DISK, None)).volumes[-1].volume_id


async def make_snapshot(volumes: Volumes, volume_id: VolumeId, name: str = "one") -> SnapshotId:
    await volumes.create_snapshot(SnapshotSpec(name, volume_id, TAGS))

    async def is_complete() -> bool:
        found = (await volumes.find(DISK, None)).find_snapshot(name)
        return found is not None and found.phase is SnapshotPhase.COMPLETED

    await eventually(is_complete)
    found = (await volumes.find(DISK, None)).find_snapshot(name)
    assert found is not None
    return found.snapshot_id


class VolumeRules:
    """Subclassed where the adapter is; `volumes` is a fixture there."""

    async def test_a_volume_says_whose_it_is(self, volumes: Volumes) -> None:
        await make_volume(volumes)
        [found] = (await volumes.find(DISK, None)).volumes
        assert found.tags == TAGS
        assert (found.size_gb, found.attached_to) == (20, "")
        assert abs(found.created_at - datetime.now(UTC)) < timedelta(minutes=5)

    async def test_what_belongs_to_another_disk_is_not_found(self, volumes: Volumes) -> None:
        await make_volume(volumes)
        other = DiskId(str(uuid4()))
        assert (await volumes.find(other, None)).volumes == ()

    async def test_a_volume_is_found_by_its_own_id_whatever_its_tags(self, volumes: Volumes) -> None:
        made = await make_volume(volumes)
        await make_snapshot(volumes, made)
        holdings = await volumes.find(DiskId(str(uuid4())), made)
        assert [each.volume_id for each in holdings.volumes] == [made]
        assert [each.volume_id for each in holdings.snapshots] == [made]

    async def test_a_snapshot_of_the_same_token_is_the_same(self, volumes: Volumes) -> None:
        made = await make_volume(volumes)
        first = await make_snapshot(volumes, made, "one")
        assert await make_snapshot(volumes, made, "one") == first
        assert await make_snapshot(volumes, made, "two") != first
        assert len((await volumes.find(DISK, None)).snapshots) == 2

    async def test_a_volume_of_a_snapshot_says_so(self, volumes: Volumes) -> None:
        made = await make_volume(volumes)
        snapshot = await make_snapshot(volumes, made)
        await make_volume(volumes, VolumeSpec("second", TAGS, 20, source_snapshot_id=snapshot))
        sources = {each.source_snapshot_id for each in (await volumes.find(DISK, None)).volumes}
        assert sources == {None, snapshot}

    async def test_tags_are_replaced_on_volumes_and_snapshots(self, volumes: Volumes) -> None:
        made = await make_volume(volumes)
        snapshot = await make_snapshot(volumes, made)
        deleted = DiskTags("ada", "renamed", DISK, datetime(2030, 1, 1, tzinfo=UTC))
        for tags in (deleted, DiskTags("ada", "again", DISK)):
            await volumes.set_tags([made], [snapshot], tags)
            holdings = await volumes.find(DISK, None)
            assert [each.tags for each in (*holdings.volumes, *holdings.snapshots)] == [tags, tags]

    async def test_a_volume_grows(self, volumes: Volumes) -> None:
        made = await make_volume(volumes)
        for _ in range(2):
            await volumes.grow_volume(made, 50)

        async def has_grown() -> bool:
            return (await volumes.find(DISK, None)).volumes[0].size_gb == 50

        await eventually(has_grown)

    async def test_deleting_is_the_same_twice_and_leaves_the_others(self, volumes: Volumes) -> None:
        made = await make_volume(volumes)
        first, second = await make_snapshot(volumes, made, "one"), await make_snapshot(volumes, made, "two")
        for _ in range(2):
            await volumes.delete_snapshot(first)

        async def is_first_gone() -> bool:
            found = (await volumes.find(DISK, None)).snapshots
            return [each.snapshot_id for each in found] == [second]

        await eventually(is_first_gone)
        for _ in range(2):
            await volumes.delete_volume(made)

        async def is_volume_gone() -> bool:
            return (await volumes.find(DISK, made)).volumes == ()

        await eventually(is_volume_gone)
        left = (await volumes.find(DISK, made)).snapshots
        assert [each.snapshot_id for each in left] == [second]

    async def test_everything_is_listed(self, volumes: Volumes) -> None:
        made = await make_volume(volumes)
        snapshot = await make_snapshot(volumes, made)
        assert [each.volume_id for each in await volumes.list_volumes()] == [made]
        assert [each.snapshot_id for each in await volumes.list_snapshots()] == [snapshot]
