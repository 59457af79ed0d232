"""Which disk becomes the home of a new reservation, and what is said if it cannot be had."""

from __future__ import annotations

from dataclasses import dataclass

from gpudev.app.disks import new_disk_id
from gpudev.domain.disk import DEFAULT_DISK, DEFAULT_SIZE_GB, NO_DISK, check_disk_name, check_size
from gpudev.domain.errors import Conflict, Invalid
from gpudev.domain.reservation import Reservation
from gpudev.ports.disks import Disks
from gpudev.ports.reservations import HomeWish
from gpudev.ports.users import User
from gpudev.texts.fact import Fact, fact
from gpudev.texts.vocabulary import DiskState

DEFAULT_DISK_TAKEN = fact("default_disk_in_use", name=DEFAULT_DISK)


@dataclass(frozen=True, slots=True)
class WantedDisk:
    """What a request says about its home."""

    name: str = ""
    """Empty: the user's default disk, if it can be had. `none`: no disk."""
    size_gb: int | None = None

    def to_wish(self) -> HomeWish | None:
        """Decided before anything is touched; None is a home that is not kept."""
        size = DEFAULT_SIZE_GB if self.size_gb is None else check_size(self.size_gb)
        if self.name.lower() == NO_DISK:
            return None
        if not self.name:
            return HomeWish(DEFAULT_DISK, new_disk_id(), size, is_default=True)
        return HomeWish(check_disk_name(self.name), new_disk_id(), size)

    def is_same_for(self, earlier: Reservation) -> bool:
        """Whether an earlier reservation was asked for with the same words."""
        if not self.name:
            return earlier.spec.disk_name in {"", DEFAULT_DISK}
        return earlier.spec.disk_name == ("" if self.name.lower() == NO_DISK else self.name)


@dataclass(frozen=True, slots=True)
class HomeDisks:
    """Chooses the home disk of a request among the disks of its user."""

    disks: Disks
    can_mount: bool = True
    """Whether the cluster can mount a disk at all; where it cannot, every home goes with its server."""

    def read_wish(self, wanted: WantedDisk) -> HomeWish | None:
        """The disk that is asked for. One that is named is never silently done without."""
        wish = wanted.to_wish()
        if self.can_mount or wish is None:
            return wish
        if wanted.name:
            raise Invalid("no_storage_for_disks", code="not_supported_yet")
        return None

    async def list_warnings(self, user: User, wanted: WantedDisk) -> tuple[Fact, ...]:
        """A size is for a disk that is made; one that is there has its own."""
        if not self.can_mount:
            return () if wanted.name else (fact("no_storage_for_homes"),)
        if wanted.size_gb is None or wanted.name.lower() == NO_DISK:
            return ()
        disk = await self.disks.find(user.user_id, wanted.name or DEFAULT_DISK)
        if disk is None or disk.spec.size_gb == wanted.size_gb:
            return ()
        return (fact("disk_size_ignored", name=disk.spec.name, size=disk.spec.size_gb),)

    async def check_kept(self, reservation: Reservation) -> None:
        """Refuse a home that its owner has given up meanwhile."""
        if reservation.spec.disk_id is None:
            return
        disk = await self.disks.get(reservation.spec.disk_id)
        if disk.is_deleted:
            raise Conflict(
                "home_disk_deleted", name=disk.spec.name, reservation=reservation.id, code="disk_deleted"
            )

    async def describe_conflict(self, user: User, wish: HomeWish) -> Conflict:
        """The sentence with the choices: another disk, a new one, or none."""
        disks = await self.disks.list_of(user.user_id)
        taken = next((disk for disk in disks if disk.spec.name == wish.disk_name), None)
        free = [disk.spec.name for disk in disks if disk.state is DiskState.AVAILABLE and not disk.named_by]
        return Conflict(
            "wanted_disk_attached",
            name=wish.disk_name,
            reservation=taken.named_by if taken else None,
            free=free,
            code="disk_in_use",
        )
