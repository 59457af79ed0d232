"""Everything that is known of one reservation when it is decided what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from gpudev.domain.catalogue import GpuType
from gpudev.domain.disk import Disk
from gpudev.domain.drain import Drain
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.idle import NEVER, IdlePolicy
from gpudev.domain.job import Job
from gpudev.domain.operations import Operation
from gpudev.domain.plans.actions import (
    ReservationAction,
)
from gpudev.domain.reservation import (
    Reservation,
)
from gpudev.domain.server import ObservedServer

Plan = tuple[ReservationAction, ...]


@dataclass(frozen=True, slots=True)
class Observation:
    """One read of the database and the cluster.

    `server` is None if the cluster said that there is none, or where it did not answer at all.
    """

    reservation: Reservation
    operations: tuple[Operation, ...]
    server: ObservedServer | None
    gpu_type: GpuType
    policy: TimePolicy
    now: datetime
    cluster_answers: bool = True
    idle_policy: IdlePolicy = NEVER
    has_node: bool = True
    """Whether the nodes of its placement are still part of the cluster; asked of one without a server."""
    disk: Disk | None = None
    """The disk of a reservation that starts, if it has one."""
    drains: tuple[Drain, ...] = ()
    """Those of its nodes that are taken out of service."""
    told_at: datetime | None = None
    """When its users may be told something, if that is not now: they did not hear it the last time."""

    job: Job | None = None
    """The command of `gpu-dev submit` on it, as far as its files tell; None: none, or nobody asked."""

    @property
    def due_operations(self) -> tuple[Operation, ...]:
        """One that was to wait a moment has nothing to wait for once the reservation has ended."""
        is_ended = self.reservation.is_ended
        return tuple(asked for asked in self.operations if is_ended or asked.is_due(self.now))
