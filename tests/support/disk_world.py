"""A small world for disks: real database, real storage, real controllers, and a cluster in memory.

The cluster plays no part in what is tested but to mount volumes: it notes who has which, refuses to mount one
twice, and writes the bytes that users write. Turns are taken one by one, so that a test can crash between any
two actions.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from gpudev.adapters.aws.volumes import AwsVolumes
from gpudev.adapters.local.disk_folders import DiskFolders
from gpudev.adapters.local.volumes import LocalVolumes
from gpudev.app.controllers.admission import AdmissionController
from gpudev.app.controllers.disks import SAFETY_NET, DiskExecutor, DiskWork, Surroundings
from gpudev.app.controllers.reservations import Rules
from gpudev.app.disk_reconciliation import DiskReconciliation
from gpudev.app.disks import DiskUseCases, new_disk_id
from gpudev.app.identity.authentication import Caller
from gpudev.app.turns.engine import Engine, Hands
from gpudev.bootstrap.foundation import Stores
from gpudev.domain.capacity import Node
from gpudev.domain.catalogue import DEFAULT_CATALOGUE
from gpudev.domain.disk import Disk, DiskId, VolumeId
from gpudev.domain.errors import Stale, StorageUnavailable, Unavailable
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.idle import Usage
from gpudev.domain.job import Job
from gpudev.domain.names import NodeName, OperationId, ReservationId
from gpudev.domain.notices import Notice
from gpudev.domain.plans.disk_turn import DiskPolicy
from gpudev.domain.plans.orphans import Leftover
from gpudev.domain.reservation import Reservation
from gpudev.domain.server import ObservedMember, ObservedServer, ServerPhase, ServerSpec, SshAddress
from gpudev.domain.volume import FileListing
from gpudev.ports.cluster import ClusterChange, Snapshot
from gpudev.ports.reservations import HomeWish
from gpudev.ports.turns import Kind
from gpudev.ports.users import User
from gpudev.ports.volumes import Listings, Volumes
from gpudev.texts.vocabulary import OperationKind
from tests.support.ec2 import ZONES, Ec2
from tests.support.engines import AnyEngine, make_reservation_engine
from tests.support.reservations import NOON, make_reservation, submit

TABLES = (
    "TRUNCATE turns, reservation_records, reservation_events, operations, disks, snapshots, disk_operations, "
    "disk_events, disk_reconciliations, pgmq.q_disk_operations, pgmq.q_gpu_reservations CASCADE"
)
Content = frozenset[str]


class Crash(BaseException):
    """`kill -9`, as far as the code can tell: nothing catches it."""


@dataclass(slots=True)
class MovableClock:
    time: datetime = NOON

    def now(self) -> datetime:
        return self.time


class Storage(Protocol):
    """A storage with the hands of a user in it."""

    volumes: Volumes

    def attach(self, volume_id: VolumeId, node: NodeName, server: str) -> None: ...

    def detach(self, volume_id: VolumeId) -> None: ...

    def write(self, volume_id: VolumeId, word: str) -> None: ...

    def read(self, place: str) -> Content:
        """What is on a volume or a snapshot; nothing if it is not there."""
        ...

    def note_copies(self) -> None:
        """Called after every step: what was copied in it has what its source had."""
        ...


class LocalStorage:
    def __init__(self, root: Path, clock: MovableClock) -> None:
        self._folders = DiskFolders(root, durable=False)
        self._folders.prepare()
        self.attached: dict[VolumeId, str] = {}
        self.volumes: Volumes = LocalVolumes(self._folders, clock, lambda: self.attached)

    def attach(self, volume_id: VolumeId, node: NodeName, server: str) -> None:
        self.attached[volume_id] = server
        (self._folders.volumes / volume_id / "home").mkdir(exist_ok=True)

    def detach(self, volume_id: VolumeId) -> None:
        self.attached.pop(volume_id, None)

    def write(self, volume_id: VolumeId, word: str) -> None:
        (self._folders.volumes / volume_id / "home" / word).write_text(word)

    def read(self, place: str) -> Content:
        for folder in (self._folders.volumes, self._folders.snapshots):
            if (folder / place).is_dir():
                home = folder / place / "home"
                return (
                    frozenset(file.read_text() for file in home.iterdir()) if home.is_dir() else frozenset()
                )
        return frozenset()

    def note_copies(self) -> None:
        """The copies are real."""


class Ec2Storage:
    """Moto's volumes have no bytes; here is written down which would be where."""

    def __init__(self, ec2: Ec2) -> None:
        ec2.remove_disks()
        self._client = ec2.quiet_client()
        self._machines = {NodeName(f"t4-{zone[-1]}"): ec2.find_instance(zone) for zone in ZONES}
        self._content: dict[str, Content] = {}
        self._holders: dict[VolumeId, str] = {}
        self.volumes: Volumes = AwsVolumes(ec2.client(), ZONES[0])

    def attach(self, volume_id: VolumeId, node: NodeName, server: str) -> None:
        device = f"/dev/sd{len(self._holders)}{volume_id[-4:]}"
        self._holders[volume_id] = self._machines[node]
        self._client.attach_volume(VolumeId=volume_id, InstanceId=self._machines[node], Device=device)

    def detach(self, volume_id: VolumeId) -> None:
        if machine := self._holders.pop(volume_id, None):
            self._client.detach_volume(VolumeId=volume_id, InstanceId=machine)

    def write(self, volume_id: VolumeId, word: str) -> None:
        # A copy has what was there when it was made, which is before this word.
        self.note_copies()
        self._content[volume_id] = self._content.get(volume_id, frozenset()) | {word}

    def read(self, place: str) -> Content:
        return self._content.get(place, frozenset())

    def note_copies(self) -> None:
        snapshots = self._client.describe_snapshots(
            Filters=[{"Name": "tag-key", "Values": ["gpu-dev-user"]}], OwnerIds=["self"]
        )["Snapshots"]
        for snapshot in snapshots:
            self._content.setdefault(snapshot["SnapshotId"], self.read(snapshot["VolumeId"]))
        volumes = self._client.describe_volumes(Filters=[{"Name": "tag-key", "Values": ["gpu-dev-user"]}])
        for volume in volumes["Volumes"]:
            if volume.get("SnapshotId"):
                self._content.setdefault(volume["VolumeId"], self.read(volume["SnapshotId"]))
        there = {each["SnapshotId"] for each in snapshots} | {v["VolumeId"] for v in volumes["Volumes"]}
        self._content = {place: words for place, words in self._content.items() if place in there}


class ModelCluster:
    """Two nodes in two zones. A server is there as soon as it is asked for, with its volume mounted."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.servers: dict[ReservationId, ObservedServer] = {}
        self.mounts: dict[ReservationId, VolumeId] = {}

    def snapshot(self) -> Snapshot:
        taken = {node: sum(s.nodes[0] == node for s in self.servers.values()) for node in NODES}
        nodes = tuple(
            Node(name, "t4", slots=2, free_slots=2 - taken[name], zone=zone) for name, zone in NODES.items()
        )
        return Snapshot(nodes, dict(self.servers))

    async def find_server(self, reservation_id: ReservationId, node_count: int = 1) -> ObservedServer | None:
        return self.servers.get(reservation_id)

    async def create_server(self, spec: ServerSpec) -> None:
        if spec.reservation_id in self.servers:
            return
        if spec.home is not None:
            assert spec.home.volume_id not in self.mounts.values(), "a disk is mounted twice"
            self._storage.attach(spec.home.volume_id, spec.nodes[0], spec.name)
            self.mounts[spec.reservation_id] = spec.home.volume_id
        member = ObservedMember(spec.nodes[0], ServerPhase.READY, address=SshAddress("127.0.0.1", 22))
        self.servers[spec.reservation_id] = ObservedServer(spec.reservation_id, str(uuid4()), (member,))

    async def delete_server(self, reservation_id: ReservationId, uid: str) -> None:
        if self.servers.pop(reservation_id, None) and (volume := self.mounts.pop(reservation_id, None)):
            self._storage.detach(volume)

    async def tell(self, reservation_id: ReservationId, uid: str, notices: tuple[Notice, ...]) -> None:
        """Nobody is there to read."""

    async def list_home(self, reservation_id: ReservationId, uid: str) -> FileListing | None:
        return None

    async def find_job(self, reservation_id: ReservationId, uid: str) -> Job | None:
        return None

    async def measure(self, reservation_id: ReservationId, uid: str, now: datetime) -> Usage | None:
        return None

    async def discard_port_slot(self, port_slot: str) -> None:
        """There are none."""

    def list_leftovers(self) -> tuple[Leftover, ...]:
        return ()

    async def remove_leftover(self, leftover: Leftover) -> None:
        """There are none."""

    async def changes(self) -> AsyncIterator[ClusterChange]:
        """Nobody listens: turns are taken by hand."""
        return
        yield


NODES: Mapping[NodeName, str] = {NodeName(f"t4-{zone[-1]}"): zone for zone in ZONES}


class Flaky:
    """A storage that sometimes does not answer, before or after it did what it was asked."""

    def __init__(self, volumes: Volumes, happens: Callable[[], bool]) -> None:
        self._volumes = volumes
        self._happens = happens

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._volumes, name)

        async def maybe(*arguments: Any) -> Any:
            if self._happens():
                raise StorageUnavailable("words", words="Said by the test.")
            answer = await call(*arguments)
            if self._happens():
                raise StorageUnavailable("words", words="Said by the test, after it was done.")
            return answer

        return maybe


@dataclass
class DiskWorld:
    stores: Stores
    storage: Storage
    caller: Caller
    clock: MovableClock
    trouble: Callable[[], bool] = lambda: False
    """Whether the storage fails now."""
    dies_after: int | None = None
    """How many more fault points are passed before the process dies."""
    expected: dict[DiskId, set[str]] = field(default_factory=dict)
    """Every word that was ever written to a disk."""

    def __post_init__(self) -> None:
        self.cluster = ModelCluster(self.storage)
        self.own = DiskUseCases(self.stores.disks, self.clock, rename_patience=timedelta(0))
        self.start_controllers()

    def start_controllers(self) -> None:
        """As after a restart: nothing is remembered."""
        rules = Rules(DEFAULT_CATALOGUE, TimePolicy())
        stores, clock = self.stores, self.clock
        volumes: Any = Flaky(self.storage.volumes, self._is_in_trouble)
        self.reservations = make_reservation_engine(stores, self.cluster, clock, rules, self._fault_point)
        self.admission = AdmissionController(
            stores.admissions, stores.nodes, self.cluster, rules, clock, "test"
        )
        self.disks = self.make_disk_engine(volumes)
        self.reconcile = DiskReconciliation(stores.disk_ledger, volumes, clock, "test").run

    def make_disk_engine(self, volumes: Any, listings: Listings | None = None) -> AnyEngine:
        stores = self.stores
        around = Surroundings(stores.reservations, self.cluster, self.clock, DiskPolicy())
        work = DiskWork(DiskExecutor(stores.disks, volumes, listings), around)
        return Engine(work, Hands(stores.turns, stores.messages.of_disks, self.clock, self._fault_point))

    def _is_in_trouble(self) -> bool:
        return self.trouble()

    def _fault_point(self, _point: str) -> None:
        if self.dies_after is None:
            return
        self.dies_after -= 1
        if self.dies_after < 0:
            self.dies_after = None
            raise Crash

    async def drive(self, rounds: int = 8) -> None:
        """Turns for everything that is due, until nothing is."""
        for _ in range(rounds):
            if not await self._take_due_turns():
                return

    async def _take_due_turns(self) -> bool:
        now = self.clock.now()
        for gpu_type in await self.stores.admissions.list_waiting_types():
            await self._turn(self.admission.turn(gpu_type))
        disks = await self.stores.turns.list_due(Kind.DISK, now, 100)
        for disk_id in disks:
            await self._turn(self.disks.turn(disk_id))
        reservations = await self.stores.turns.list_due(Kind.RESERVATION, now, 100)
        for reservation_id in reservations:
            await self._turn(self.reservations.turn(reservation_id))
        return bool(disks or reservations)

    async def _turn(self, turn: Any) -> None:
        try:
            await turn
        except (Unavailable, Stale):
            pass
        except Crash:
            await self._restart()

    async def _restart(self) -> None:
        """The next process knows itself to be the only one, as on one machine."""
        await self.stores.turns.take_over(Kind.RESERVATION, self.clock.now())
        await self.stores.turns.take_over(Kind.DISK, self.clock.now(), within=SAFETY_NET)
        self.start_controllers()

    async def submit(self, disk_name: str) -> Reservation:
        wish = HomeWish(disk_name, new_disk_id(), 20)
        asked = make_reservation(self.caller, created_at=self.clock.now())
        reservation = await submit(self.stores, asked, wish)
        assert reservation.spec.disk_id is not None
        self.expected.setdefault(reservation.spec.disk_id, set())
        return reservation

    async def cancel(self, reservation: Reservation) -> None:
        operation = OperationId(str(uuid4()))
        await self.stores.operations.request(operation, reservation, OperationKind.CANCEL, self.clock.now())

    async def write(self, reservation_id: ReservationId) -> None:
        volume_id = self.cluster.mounts[reservation_id]
        reservation = await self.stores.reservations.get(reservation_id)
        assert reservation.spec.disk_id is not None
        word = f"word-{uuid4().hex[:8]}"
        self.storage.write(volume_id, word)
        self.expected[reservation.spec.disk_id].add(word)

    async def list_disks(self) -> tuple[Disk, ...]:
        rows = await self.stores.disk_ledger.list_rows()
        return tuple(row.disk for row in rows)


def make_caller(user: User) -> Caller:
    return Caller(user.user_id, user.username)


@contextmanager
def temporary_root(parent: Path) -> Iterator[Path]:
    root = parent / uuid4().hex
    root.mkdir()
    try:
        yield root
    finally:
        shutil.rmtree(root)
