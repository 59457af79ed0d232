"""Carry out the actions of a reservation's plan: one at a time, idempotent, no decisions.

The fault points, before and after each action by name, are for tests that kill the process exactly
there; in production they do nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import assert_never

import structlog

from gpudev.domain.errors import ClusterUnavailable
from gpudev.domain.plans.actions import (
    CreateServer,
    DeleteServer,
    DiscardPortSlot,
    DriveAdmission,
    KeepJobOutput,
    ListHome,
    LookAgain,
    Note,
    Record,
    ReservationAction,
    SettleOperations,
    Tell,
)
from gpudev.domain.reservation import Reservation
from gpudev.ports.clock import Clock
from gpudev.ports.cluster import Cluster
from gpudev.ports.disks import Disks
from gpudev.ports.job_outputs import JobOutputs
from gpudev.ports.store import Admissions, Claim, Operations, Reservations

_log = structlog.get_logger(__name__)

FaultPoint = Callable[[str], None]


def no_fault(_point: str) -> None:
    """The fault point of production."""


@dataclass(frozen=True, slots=True)
class Executor:
    reservations: Reservations
    operations: Operations
    admissions: Admissions
    cluster: Cluster
    clock: Clock
    fault_point: FaultPoint = no_fault
    disks: Disks | None = None
    """Where listings of homes are kept; None: nowhere."""
    job_outputs: JobOutputs | None = None

    async def execute(self, claim: Claim, now: Reservation, action: ReservationAction) -> Reservation:
        """Do it; the reservation as it is afterwards."""
        name = snake_case(type(action).__name__)
        self.fault_point(f"before_{name}")
        after = await self._do(claim, now, action)
        self.fault_point(f"after_{name}")
        return after

    async def _do(self, claim: Claim, now: Reservation, action: ReservationAction) -> Reservation:
        match action:
            case Record():
                return await self.reservations.record(claim, action)
            case Note(noted):
                return await self.reservations.note(claim, replace(noted, version=now.version))
            case LookAgain():
                pass
            case KeepJobOutput(reservation_id, output):
                if self.job_outputs is not None:
                    await self.job_outputs.keep(reservation_id, output)
            case SettleOperations(outcomes):
                await self.operations.settle(outcomes, self.clock.now())
            case DriveAdmission(gpu_type):
                await self.admissions.wake(gpu_type)
            case _:
                await self._do_on_cluster(action)
        return now

    async def _do_on_cluster(
        self, action: CreateServer | DeleteServer | ListHome | DiscardPortSlot | Tell
    ) -> None:
        match action:
            case CreateServer(spec):
                await self.cluster.create_server(spec)
            case DeleteServer(reservation_id, uid):
                await self.cluster.delete_server(reservation_id, uid)
            case ListHome():
                await self._list_home(action)
            case DiscardPortSlot(port_slot):
                await self.cluster.discard_port_slot(port_slot)
            case Tell(reservation_id, uid, notices):
                await self.cluster.tell(reservation_id, uid, notices)
            case other:
                assert_never(other)

    async def _list_home(self, action: ListHome) -> None:
        """A server that says nothing goes all the same."""
        if self.disks is None:
            return
        try:
            listing = await self.cluster.list_home(action.reservation_id, action.uid)
        except ClusterUnavailable as error:
            _log.warning("home_not_listed", reservation_id=action.reservation_id, error=error.message)
            return
        if listing is not None:
            await self.disks.keep_home_listing(action.disk_id, listing)


def snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
