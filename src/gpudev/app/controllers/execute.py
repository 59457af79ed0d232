"""Carry out the actions of a reservation's plan: one at a time, idempotent, no decisions.

The fault points, before and after each action by name, are for tests that kill the process exactly
there; in production they do nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import assert_never

from gpudev.domain.plans.actions import (
    CreateServer,
    DeleteServer,
    DiscardPortSlot,
    DriveAdmission,
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
from gpudev.ports.store import Admissions, Claim, Operations, Reservations

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

    async def execute(self, claim: Claim, now: Reservation, action: ReservationAction) -> Reservation:
        """Do it; the reservation as it is afterwards."""
        name = snake_case(type(action).__name__)
        self.fault_point(f"before_{name}")
        after = await self._do(claim, now, action)
        self.fault_point(f"after_{name}")
        return after

    async def _do(self, claim: Claim, now: Reservation, action: ReservationAction) -> Reservation:
        match action:
            case CreateServer(spec):
                await self.cluster.create_server(spec)
            case DeleteServer(reservation_id, uid):
                await self.cluster.delete_server(reservation_id, uid)
            case DiscardPortSlot(port_slot):
                await self.cluster.discard_port_slot(port_slot)
            case Record():
                return await self.reservations.record(claim, action)
            case SettleOperations(outcomes):
                await self.operations.settle(outcomes, self.clock.now())
            case Tell(reservation_id, uid, notices):
                await self.cluster.tell(reservation_id, uid, notices)
            case Note(noted):
                return await self.reservations.note(claim, replace(noted, version=now.version))
            case DriveAdmission(gpu_type):
                await self.admissions.wake(gpu_type)
            case LookAgain():
                pass
            case other:
                assert_never(other)
        return now


def snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
