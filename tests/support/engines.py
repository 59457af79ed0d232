"""Turn engines for tests that take the turns themselves."""

from __future__ import annotations

from typing import Any, TypeAlias

from gpudev.app.controllers.reservations import ReservationWork, Rules
from gpudev.app.turns.engine import Engine, FaultPoint, Hands, no_fault
from gpudev.bootstrap.controller import make_executor
from gpudev.bootstrap.foundation import Stores
from gpudev.ports.clock import Clock

AnyEngine: TypeAlias = Engine[Any, Any, Any]


def make_reservation_engine(
    stores: Stores, cluster: Any, clock: Clock, rules: Rules, fault_point: FaultPoint = no_fault
) -> AnyEngine:
    work = ReservationWork(make_executor(stores, cluster, clock), rules, stores.disks)
    return Engine(work, Hands(stores.turns, stores.messages.of_reservations, clock, fault_point))
