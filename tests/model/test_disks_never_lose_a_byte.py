"""Disks in a world where everything goes wrong: no byte that a user wrote is ever out of reach.

Random requests, crashes between any two actions and a storage that fails, with a real database, the real
controllers and a real storage (directories, or EBS as moto plays it). After each step:

- every word that was written to a disk that is not purged is on its volume,
- no disk is mounted twice (the cluster refuses it),
- every volume belongs to a row, and after a reconciliation rows and volumes say the same.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from typing_extensions import override

from gpudev.bootstrap.foundation import Stores
from gpudev.domain.disk import Disk
from gpudev.domain.errors import Rejected, Stale
from gpudev.domain.reservation import Reservation
from gpudev.texts.vocabulary import DiskState
from tests.support.budgets import choose_depth
from tests.support.disk_world import (
    TABLES,
    DiskWorld,
    Ec2Storage,
    LocalStorage,
    MovableClock,
    Storage,
    make_caller,
    temporary_root,
)
from tests.support.ec2 import Ec2, at_random
from tests.support.reservations import open_test_stores

T = TypeVar("T")
NAMES = st.sampled_from(["one", "two", "three"])
ANY = st.integers(0, 1000)
HOUR = timedelta(hours=1)
AT_REST = {DiskState.AVAILABLE, DiskState.SOFT_DELETED, DiskState.PURGED}
QUICK = settings(
    max_examples=25,
    stateful_step_count=10,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


def sequences(count: int) -> settings:
    return settings(QUICK, max_examples=count, derandomize=False)


class Disks(RuleBasedStateMachine):
    """One user, three names, two nodes in two zones."""

    runner: ClassVar[asyncio.Runner]
    stores: ClassVar[Stores]
    storages: ClassVar[Any]
    sequences: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).sequences += 1
        self.chance = random.Random(0)
        self.is_troubled = False
        self._opened = self.storages()
        clock = MovableClock()
        storage: Storage = self._opened.__enter__()(clock)
        self.world = self.run(self._make_world(storage, clock))

    async def _make_world(self, storage: Storage, clock: MovableClock) -> DiskWorld:
        await self.stores.database.execute(TABLES)
        user = await self.stores.users.upsert("ada")
        return DiskWorld(self.stores, storage, make_caller(user), clock, trouble=self._fails)

    def _fails(self) -> bool:
        return self.is_troubled and self.chance.random() < 0.2

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def ask(self, work: Coroutine[Any, Any, T]) -> T | None:
        """What the API would refuse changes nothing."""
        try:
            return self.run(work)
        except (Rejected, Stale):
            return None

    @initialize(seed=ANY, name=NAMES)
    def begin(self, seed: int, name: str) -> None:
        self.chance = random.Random(seed)
        self.use(name)
        if seed % 2:
            self.give_back()

    @rule(name=NAMES)
    def use(self, name: str) -> None:
        """Reserve, and if a server comes of it, write."""
        self.ask(self.world.submit(name))
        self.drive()
        self.write(-1)

    @rule(name=NAMES)
    def reserve(self, name: str) -> None:
        self.ask(self.world.submit(name))

    @rule(which=ANY)
    def write(self, which: int) -> None:
        if mounted := list(self.world.cluster.mounts):
            self.run(self.world.write(mounted[which % len(mounted)]))

    @rule(which=ANY)
    def cancel(self, which: int) -> None:
        if live := self.run(self._list_live()):
            self.run(self.world.cancel(live[which % len(live)]))

    @rule()
    def give_back(self) -> None:
        """Everybody leaves, so that there are disks with something on them that are free."""
        for reservation in self.run(self._list_live()):
            self.run(self.world.cancel(reservation))
        self.drive()

    @rule()
    def drive(self) -> None:
        self.run(self.world.drive())

    @rule(points=st.integers(0, 12))
    def drive_and_crash(self, points: int) -> None:
        self.world.dies_after = points
        self.drive()
        self.world.dies_after = None

    @rule()
    def drive_with_a_failing_storage(self) -> None:
        self.is_troubled = True
        self.drive()
        self.is_troubled = False

    @rule()
    def expire(self) -> None:
        """Every reservation that runs is over."""
        self.pass_time(2 * HOUR)

    @rule()
    def wait(self) -> None:
        self.pass_time(timedelta(minutes=2))

    @rule()
    def wait_for_a_month(self) -> None:
        self.pass_time(timedelta(days=31))

    def pass_time(self, length: timedelta) -> None:
        self.world.clock.time += length
        self.drive()

    @rule(name=NAMES)
    def create(self, name: str) -> None:
        self.ask(self.world.own.create(self.world.caller, name, 20))

    @rule(name=NAMES, new_name=NAMES)
    def rename(self, name: str, new_name: str) -> None:
        self.ask(self.world.own.rename(self.world.caller, name, new_name))

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        self.ask(self.world.own.delete(self.world.caller, name))

    @rule(name=NAMES, new_name=NAMES)
    def restore(self, name: str, new_name: str) -> None:
        self.ask(self.world.own.restore(self.world.caller, name, new_name))

    @rule(name=NAMES)
    def grow(self, name: str) -> None:
        self.ask(self.world.own.grow(self.world.caller, name, 30))

    @rule(name=NAMES, new_name=NAMES)
    def clone(self, name: str, new_name: str) -> None:
        """The copy has what its source had: now, or, of one in use, when it was given back."""
        source = self.run(self.stores.disks.find(self.world.caller.user_id, name))
        if source is None or self.ask(self.world.own.clone(self.world.caller, name, new_name)) is None:
            return
        copy = self.run(self.stores.disks.find(self.world.caller.user_id, new_name))
        assert copy is not None
        self.world.expected[copy.id] = self._list_words(source)

    def _list_words(self, source: Disk) -> set[str]:
        if source.state is DiskState.AVAILABLE and not source.problem:
            return set(self.world.expected.get(source.id, ()))
        newest = self.run(self.stores.disks.list_snapshots(source.id))[0]
        return set(self.world.storage.read(newest.snapshot_id))

    @rule()
    def reconcile(self) -> None:
        done = self.run(self.world.reconcile())
        assert done is not None
        assert done.statistics.errors == 0, done.remarks
        self.check_that_rows_and_volumes_agree()

    @rule()
    def reconcile_with_a_failing_storage(self) -> None:
        self.is_troubled = True
        self.run(self.world.reconcile())
        self.is_troubled = False

    @invariant()
    def nothing_is_lost(self) -> None:
        self.world.storage.note_copies()
        rows = {disk.id: disk for disk in self.run(self.world.list_disks())}
        for disk in rows.values():
            self._check_words(disk)
        for volume in self.run(self.world.storage.volumes.list_volumes()):
            assert volume.tags is not None
            assert volume.tags.disk_id in rows
            assert rows[volume.tags.disk_id].state is not DiskState.PURGED

    def _check_words(self, disk: Disk) -> None:
        if disk.state in {DiskState.PURGING, DiskState.PURGED}:
            assert disk.deleted_at is not None
            assert disk.deleted_at + timedelta(days=30) <= self.world.clock.now(), "gone before its time"
            return
        if disk.state is DiskState.CREATING:
            return
        expected = self.world.expected.get(disk.id, set())
        there = self.world.storage.read(disk.volume.volume_id) if disk.volume.volume_id else frozenset()
        assert expected <= there, f"{disk.spec.name} ({disk.state}) lost {expected - there}"

    def check_that_rows_and_volumes_agree(self) -> None:
        volumes = {each.volume_id: each for each in self.run(self.world.storage.volumes.list_volumes())}
        for disk in self.run(self.world.list_disks()):
            if disk.volume.volume_id is None or disk.state is DiskState.PURGED:
                continue
            volume = volumes.get(disk.volume.volume_id)
            if disk.state is DiskState.PURGING and volume is None:
                continue
            assert volume is not None, disk
            assert volume.size_gb == disk.spec.size_gb
            assert bool(volume.attached_to) is disk.volume.is_attached

    @override
    def teardown(self) -> None:
        """Without any more trouble everything comes to rest, and all that was written is there."""
        try:
            self.run(self._come_to_rest())
            self.nothing_is_lost()
            for disk in self.run(self.world.list_disks()):
                assert disk.state in AT_REST, disk
        finally:
            self._opened.__exit__(None, None, None)

    async def _come_to_rest(self) -> None:
        for reservation in await self._list_live():
            await self.world.cancel(reservation)
        for _ in range(6):
            self.world.clock.time += timedelta(minutes=6)
            await self.world.drive()

    async def _list_live(self) -> list[Reservation]:
        rows = await self.stores.database.fetch(
            "SELECT reservation_id FROM reservations WHERE reservation_ended IS NULL ORDER BY created_at"
        )
        return [await self.stores.reservations.get(row["reservation_id"]) for row in rows]


class DisksOnEc2(Disks):
    """The same with errors by AWS' own codes."""

    ec2: ClassVar[Ec2]

    @rule(
        code=st.sampled_from(
            ["RequestLimitExceeded", "Unavailable", "UnauthorizedOperation", "InternalError"]
        )
    )
    def drive_while_aws_refuses(self, code: str) -> None:
        self.ec2.fault = at_random(self.chance, 0.3, code)
        self.drive()
        self.ec2.fault = lambda _name: None


@pytest.fixture
def runner(database: str) -> Iterator[tuple[asyncio.Runner, Stores]]:
    with asyncio.Runner() as running:
        opened = open_test_stores(database)
        stores = running.run(opened.__aenter__())
        yield running, stores
        running.run(opened.__aexit__(None, None, None))


def run_on_directories(runner: tuple[asyncio.Runner, Stores], root: Path, budget: settings) -> int:
    """How many sequences were run."""

    class OpenLocal:
        def __enter__(self) -> Any:
            self._root = temporary_root(root)
            folder = self._root.__enter__()
            return lambda clock: LocalStorage(folder, clock)

        def __exit__(self, *_: object) -> None:
            self._root.__exit__(None, None, None)

    machine = type("OnDirectories", (Disks,), {"storages": OpenLocal, "sequences": 0})
    machine.runner, machine.stores = runner  # type: ignore[attr-defined]
    run_state_machine_as_test(machine, settings=budget)
    return int(machine.sequences)  # type: ignore[attr-defined]


def run_on_ec2(runner: tuple[asyncio.Runner, Stores], ec2: Ec2, budget: settings) -> int:
    class OpenEc2:
        def __enter__(self) -> Any:
            return lambda _clock: Ec2Storage(ec2)

        def __exit__(self, *_: object) -> None:
            ec2.fault = lambda _name: None

    machine = type("OnEc2", (DisksOnEc2,), {"storages": OpenEc2, "sequences": 0, "ec2": ec2})
    machine.runner, machine.stores = runner  # type: ignore[attr-defined]
    run_state_machine_as_test(machine, settings=budget)
    return int(machine.sequences)  # type: ignore[attr-defined]


def test_no_byte_is_lost_on_directories(runner: tuple[asyncio.Runner, Stores], tmp_path: Path) -> None:
    run_on_directories(runner, tmp_path, QUICK)


def test_no_byte_is_lost_on_ec2(runner: tuple[asyncio.Runner, Stores], ec2: Ec2) -> None:
    run_on_ec2(runner, ec2, settings(QUICK, max_examples=6))


@pytest.mark.long
def test_no_byte_is_lost_in_very_many_sequences_on_directories(
    runner: tuple[asyncio.Runner, Stores], tmp_path: Path
) -> None:
    count = choose_depth(long=60, soak=2000)
    assert run_on_directories(runner, tmp_path, sequences(count)) >= count


@pytest.mark.long
def test_no_byte_is_lost_in_many_sequences_on_ec2(runner: tuple[asyncio.Runner, Stores], ec2: Ec2) -> None:
    count = choose_depth(long=30, soak=300)
    assert run_on_ec2(runner, ec2, sequences(count)) >= count
