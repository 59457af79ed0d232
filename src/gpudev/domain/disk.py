"""A disk: a named home that outlives its reservations, where it stands, and the moves that change it.

One owner of its state: the database row, changed only by guarded writes. What destroys data is no move of
this module alone; it needs a proof from `domain.proofs` as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import NewType

from gpudev.domain.errors import IllegalMove, Invalid
from gpudev.domain.names import OperationId, ReservationId, UserId
from gpudev.texts.fact import Fact
from gpudev.texts.sentences import say
from gpudev.texts.vocabulary import DiskEventKind, DiskOperationKind, DiskState

DiskId = NewType("DiskId", str)
"""A UUID; names change, this does not."""
VolumeId = NewType("VolumeId", str)
SnapshotId = NewType("SnapshotId", str)

DEFAULT_DISK = "default"
NO_DISK = "none"
"""Not a disk name: it asks for a home that is not kept."""

DEFAULT_SIZE_GB = 100
MIN_SIZE_GB = 10
MAX_SIZE_GB = 10_000

SOFT_DELETE_LASTS = timedelta(days=30)
SNAPSHOTS_KEPT = 3
SNAPSHOTS_KEPT_FOR = timedelta(days=7)

_NAME = re.compile(r"[A-Za-z0-9_-]{1,50}")


MOVES: Mapping[DiskState, frozenset[DiskState]] = MappingProxyType(
    {
        DiskState.CREATING: frozenset({DiskState.AVAILABLE}),
        DiskState.AVAILABLE: frozenset({DiskState.ATTACHING, DiskState.SNAPSHOTTING, DiskState.SOFT_DELETED}),
        # Back at once if its reservation went before a server could have it.
        DiskState.ATTACHING: frozenset({DiskState.IN_USE, DiskState.AVAILABLE}),
        # Available without a snapshot only if the volume is gone: then there is nothing to take one of.
        DiskState.IN_USE: frozenset({DiskState.RELEASING, DiskState.AVAILABLE}),
        DiskState.RELEASING: frozenset({DiskState.SNAPSHOTTING, DiskState.AVAILABLE}),
        DiskState.SNAPSHOTTING: frozenset({DiskState.AVAILABLE}),
        DiskState.SOFT_DELETED: frozenset({DiskState.AVAILABLE, DiskState.PURGING}),
        DiskState.PURGING: frozenset({DiskState.PURGED}),
        DiskState.PURGED: frozenset(),
    }
)

HELD = frozenset({DiskState.ATTACHING, DiskState.IN_USE, DiskState.RELEASING})
"""Belongs to a reservation."""
DELETED = frozenset({DiskState.SOFT_DELETED, DiskState.PURGING, DiskState.PURGED})


@dataclass(frozen=True, slots=True)
class DiskOperation:
    """An action on a disk that a user requested and a controller carries out."""

    operation_id: OperationId
    kind: DiskOperationKind
    requested_at: datetime
    size_gb: int | None = None
    """To grow to."""


@dataclass(frozen=True, slots=True)
class DiskEvent:
    kind: DiskEventKind
    fact: Fact
    at: datetime

    @property
    def message(self) -> str:
        """The words for logs and tests, with times in UTC."""
        return say(self.fact)


@dataclass(frozen=True, slots=True)
class DiskSpec:
    """Whose it is, and what was asked for."""

    user_id: UserId
    username: str
    name: str
    size_gb: int
    created_at: datetime
    source_disk_id: DiskId | None = None
    """The disk that this one is a copy of, until the copy is made."""
    source_snapshot_id: SnapshotId | None = None


@dataclass(frozen=True, slots=True)
class DiskVolume:
    """Where its data is."""

    volume_id: VolumeId | None = None
    """None: no volume was made yet. A volume that is named here and not found is lost, never made anew."""
    zone: str = ""
    is_dirty: bool = False
    """Somebody may have written to the volume since its last complete snapshot."""
    is_attached: bool = False
    """By the last reconciliation, to whatever."""


@dataclass(frozen=True, slots=True)
class Snapshots:
    snapshot_number: int = 0
    """Counts the snapshots that were begun; with the id it is the token of the present one."""
    snapshot_count: int = 0
    last_snapshot_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk in its state; `version` grows with every change. Its parts are written apart."""

    id: DiskId
    spec: DiskSpec
    volume: DiskVolume = field(default_factory=DiskVolume)
    snapshots: Snapshots = field(default_factory=Snapshots)
    state: DiskState = DiskState.CREATING
    reservation_id: ReservationId | None = None
    """Whose it is, from the moment it is taken until it is given back."""
    named_by: ReservationId | None = None
    """The live reservation that asked for it, whether it has it yet or not. Not a column: looked up."""
    problem: Fact | None = None
    """What keeps it from going on, with what an operator should do."""
    last_used: datetime | None = None
    released_at: datetime | None = None
    """When its last reservation was found to be over."""
    deleted_at: datetime | None = None
    delete_date: datetime | None = None
    operation_id: OperationId | None = None
    operation_status: str = ""
    version: int = 1

    @property
    def is_held(self) -> bool:
        return self.state in HELD

    @property
    def is_deleted(self) -> bool:
        return self.state in DELETED

    @property
    def in_use(self) -> bool:
        return self.is_held or self.named_by is not None or self.volume.is_attached

    @property
    def is_backing_up(self) -> bool:
        return self.state is DiskState.SNAPSHOTTING

    def is_ready_for(self, reservation_id: ReservationId) -> bool:
        return self.state is DiskState.IN_USE and self.reservation_id == reservation_id


def is_legal(before: DiskState, after: DiskState) -> bool:
    return after in MOVES[before]


def move(disk: Disk, state: DiskState) -> Disk:
    """The disk in another state; a move that succeeds also ends the problem that kept it back."""
    if not is_legal(disk.state, state):
        raise IllegalMove("disk_cannot_become", name=disk.spec.name, before=disk.state, after=state)
    return replace(disk, state=state, problem=None)


def let_go(disk: Disk, state: DiskState = DiskState.AVAILABLE) -> Disk:
    """Out of the hands of its reservation."""
    return replace(move(disk, state), reservation_id=None, volume=replace(disk.volume, is_attached=False))


def begin_snapshot(disk: Disk) -> Disk:
    """With the number of the next snapshot."""
    number = disk.snapshots.snapshot_number + 1
    return replace(disk, snapshots=replace(disk.snapshots, snapshot_number=number))


def check_disk_name(name: str) -> str:
    if _NAME.fullmatch(name) is None or name.lower() == NO_DISK:
        raise Invalid("bad_disk_name", name=name[:60], code="bad_disk_name")
    return name


def check_size(size_gb: int) -> int:
    if not MIN_SIZE_GB <= size_gb <= MAX_SIZE_GB:
        raise Invalid(
            "bad_disk_size", size_gb=size_gb, least=MIN_SIZE_GB, most=MAX_SIZE_GB, code="bad_disk_size"
        )
    return size_gb


def check_growth(disk: Disk, size_gb: int) -> int:
    if check_size(size_gb) <= disk.spec.size_gb:
        raise Invalid(
            "disk_cannot_shrink", name=disk.spec.name, size_gb=disk.spec.size_gb, code="bad_disk_size"
        )
    return size_gb


def soft_delete(disk: Disk, now: datetime) -> Disk:
    deleted = move(disk, DiskState.SOFT_DELETED)
    return replace(deleted, deleted_at=now, delete_date=now + SOFT_DELETE_LASTS)


def restore(disk: Disk, name: str) -> Disk:
    back = move(disk, DiskState.AVAILABLE)
    return replace(back, spec=replace(disk.spec, name=name), deleted_at=None, delete_date=None)


def is_purgeable(disk: Disk, now: datetime) -> bool:
    """Its soft delete has expired."""
    return disk.state is DiskState.SOFT_DELETED and disk.delete_date is not None and now >= disk.delete_date
